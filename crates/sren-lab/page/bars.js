// The prediction of one network: its answer, and the probability of each class as a bar.

/** Most classes that are shown. */
const MOST = 10;

export class Bars {
  constructor(card, classes) {
    this.card = card;
    this.classes = classes;
    const rows = Math.min(MOST, classes.length);
    this.rows = Array.from({ length: rows }, () => {
      const cell = (name) => Object.assign(document.createElement("div"), { className: name });
      const row = { name: cell("name"), track: cell("track"), bar: cell("bar"), share: cell("share") };
      row.track.append(row.bar);
      card.querySelector(".bars").append(row.name, row.track, row.share);
      return row;
    });
  }

  /** Shows probabilities. `expected` is what the image is, or else what was read of it upright. */
  show(probabilities, { expected, known }) {
    const order = probabilities.map((_, i) => i);
    // Digits stay in their order, so that bars do not jump.
    if (order.length > MOST) order.sort((a, b) => probabilities[b] - probabilities[a]);
    this.rows.forEach((row, i) => {
      const part = probabilities[order[i]];
      row.name.textContent = this.classes[order[i]];
      row.share.textContent = `${Math.round(100 * part)} %`;
      row.bar.style.transform = `scaleX(${part})`;
    });
    const best = probabilities.indexOf(Math.max(...probabilities));
    const name = this.classes[best];
    const answer = this.card.querySelector(".answer .class");
    answer.textContent = name;
    answer.classList.toggle("word", name.length > 3);
    const verdict = this.card.querySelector(".verdict");
    const share = `${Math.round(100 * probabilities[best])} %`;
    const right = expected === name;
    const words = known ? [`✓ right, ${share}`, `✗ wrong, ${share}`] : [`✓ as upright, ${share}`, `✗ upright: ${expected}`];
    verdict.className = `verdict ${right ? "good" : "bad"}`;
    verdict.textContent = words[right ? 0 : 1];
    return { name, share: probabilities[best] };
  }
}
