// The probability of each class over all angles: 0 degrees is at the top, clockwise, certain is far out.

const RADIUS = 100;
/** Where classes are written. */
const LETTERS = 117;
/** Fewest neighbouring angles that are worth a letter. */
const FEW = 2;

const element = (name, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};

const at = (degrees, radius) => {
  const angle = ((degrees - 90) * Math.PI) / 180;
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
};

const point = (degrees, radius) => at(degrees, radius).map((v) => v.toFixed(1)).join(" ");

export class Polar {
  constructor(figure, { classes, title, steps }) {
    Object.assign(this, { classes, title, steps });
    this.svg = figure.querySelector("svg");
    this.caption = figure.querySelector("figcaption");
    this.curves = element("g", {});
    this.hand = element("line", { class: "hand", x1: 0, y1: 0 });
    this.dot = element("circle", { class: "dot", r: 3.5 });
    const rings = [0.5, 1].map((part) => element("circle", { class: "grid", r: part * RADIUS }));
    this.svg.append(...rings, this.curves, this.hand, this.dot);
    this.rows = [];
  }

  /** Shows the probabilities `rows[step][class]`, as many as are known, and the class that is meant. */
  show(rows, meant) {
    this.rows = rows;
    const step = 360 / this.steps;
    const whole = rows.length === this.steps;
    const paths = this.classes.map((_, index) => {
      if (!rows.some((row) => row[index] > 0.03)) return null;
      const points = rows.map((row, i) => point(i * step, RADIUS * row[index]));
      const closed = whole ? "Z" : "";
      return element("path", { class: index === meant ? "main" : "other", d: `M${points.join("L")}${closed}` });
    });
    // The one that is meant lies on top.
    const order = paths.map((path, i) => [path, i === meant]).filter(([path]) => path);
    order.sort((a, b) => a[1] - b[1]);
    this.curves.replaceChildren(...order.map(([path]) => path), ...this.letters(meant));
    this.describe(meant);
  }

  /** A letter in the middle of every run of angles at which the same class is read. */
  letters(meant) {
    const best = this.rows.map((row) => row.indexOf(Math.max(...row)));
    const letters = [];
    const letter = (index, degrees) => {
      const [x, y] = at(degrees, LETTERS);
      const text = element("text", { x, y, class: index === meant ? "own" : "" });
      text.textContent = this.classes[index].slice(0, 6);
      letters.push(text);
    };
    const step = 360 / this.steps;
    const changes = best.flatMap((index, i) => (index !== best.at(i - 1) ? [i] : []));
    if (best.length < this.steps || changes.length === 0) {
      if (changes.length === 0 && best.length) letter(best[0], 0);
      return letters;
    }
    changes.forEach((first, i) => {
      const next = changes[(i + 1) % changes.length];
      const length = (next - first + this.steps) % this.steps || this.steps;
      if (length >= FEW) letter(best[first], (first + (length - 1) / 2) * step);
    });
    return letters;
  }

  describe(meant) {
    if (this.rows.length < this.steps) return;
    const right = this.rows.filter((row) => row.indexOf(Math.max(...row)) === meant).length;
    const share = Math.round((100 * right) / this.steps);
    const text = `${this.title} reads ${this.classes[meant]} at ${share} % of all angles`;
    this.svg.setAttribute("aria-label", `Probabilities over all angles. ${text}.`);
    this.caption.replaceChildren("All angles: reads ", bold(this.classes[meant]), " at ", bold(`${share} %`), " of them.");
  }

  /** Shows where the image is now. */
  turn(degrees) {
    const [x, y] = at(degrees, RADIUS);
    this.hand.setAttribute("x2", x);
    this.hand.setAttribute("y2", y);
    this.dot.setAttribute("cx", x);
    this.dot.setAttribute("cy", y);
  }
}

const bold = (text) => Object.assign(document.createElement("b"), { textContent: text });
