// The board: the image under its transform, its local frames, and the handles. Lengths are in parts of
// the canvas that the network sees, the centre is the origin of transforms.

const SCALES = [0.6, 2];
/** Distance of the handles from the centre, for the smallest and the largest image. */
const REACH = [0.26, 0.43];

const clamp = (value, [low, high]) => Math.min(high, Math.max(low, value));

/** Degrees above -180 to 180. */
export const wrap = (degrees) => degrees - 360 * Math.ceil((degrees - 180) / 360);

export class Stage {
  /** The image: a canvas, or a drawing that is painted. */
  image = null;
  angle = 0;
  scale = 1;
  frames = [];
  showFrames = true;
  /** Side of the image, in parts of the canvas. */
  side = 0.5;
  circular = false;

  /** `changed` is called when a handle has moved, `pen` with the strokes of a pen. */
  constructor(board, { changed, pen }) {
    this.board = board;
    this.canvas = board.querySelector("canvas");
    this.handles = { rotate: board.querySelector("#rotate-handle"), scale: board.querySelector("#scale-handle") };
    new ResizeObserver(() => this.draw()).observe(board);
    this.drag(this.handles.rotate, ([x, y]) => {
      this.place((Math.atan2(y, x) * 180) / Math.PI + 90, this.scale);
      changed();
    });
    this.drag(this.handles.scale, (point) => {
      const part = (Math.hypot(...point) - REACH[0]) / (REACH[1] - REACH[0]);
      this.place(this.angle, SCALES[0] * (SCALES[1] / SCALES[0]) ** clamp(part, [0, 1]));
      changed();
    });
    const keys = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 3, PageDown: -3 };
    for (const [name, handle] of Object.entries(this.handles)) {
      handle.addEventListener("keydown", (event) => {
        if (!(event.key in keys)) return;
        event.preventDefault();
        const steps = keys[event.key];
        if (name === "rotate") this.place(this.angle + 5 * steps, this.scale);
        else this.place(this.angle, this.scale * 1.05 ** steps);
        changed();
      });
    }
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      if (!pen.down(() => this.inImage(this.point(event)))) return;
      this.canvas.setPointerCapture(event.pointerId);
      const move = (event) => pen.move(this.inImage(this.point(event)));
      const up = () => {
        this.canvas.removeEventListener("pointermove", move);
        pen.up();
      };
      this.canvas.addEventListener("pointermove", move);
      this.canvas.addEventListener("lostpointercapture", up, { once: true });
    });
  }

  /** Calls `moved` with the place of the pointer while `handle` is dragged. */
  drag(handle, moved) {
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      const move = (event) => moved(this.point(event));
      handle.addEventListener("pointermove", move);
      handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true });
    });
  }

  /** The pointer, from the centre. */
  point(event) {
    const box = this.board.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width - 0.5, (event.clientY - box.top) / box.height - 0.5];
  }

  /** A place on the board in the coordinates of the image, 0 to 1. */
  inImage([x, y]) {
    const angle = (-this.angle * Math.PI) / 180;
    const factor = 1 / (this.side * this.scale);
    const [cos, sin] = [factor * Math.cos(angle), factor * Math.sin(angle)];
    return [0.5 + cos * x - sin * y, 0.5 + sin * x + cos * y];
  }

  place(angle, scale) {
    this.angle = wrap(angle);
    this.scale = clamp(scale, SCALES);
    this.draw();
  }

  draw() {
    const size = this.board.clientWidth;
    const pixels = Math.round(size * devicePixelRatio);
    if (this.canvas.width !== pixels) this.canvas.width = this.canvas.height = pixels;
    const context = this.canvas.getContext("2d");
    context.setTransform(pixels, 0, 0, pixels, pixels / 2, pixels / 2);
    // Digits are bright on black: black is the board.
    context.fillStyle = getComputedStyle(this.board).backgroundColor;
    context.fillRect(-0.5, -0.5, 1, 1);
    this.drawGuide(context);
    context.save();
    context.rotate((this.angle * Math.PI) / 180);
    context.scale(this.scale * this.side, this.scale * this.side);
    this.drawImage(context);
    context.restore();
    if (this.showFrames) this.drawFrames(context);
    this.moveHandles();
  }

  /** The ring that the handles are on. */
  drawGuide(context) {
    context.beginPath();
    context.arc(0, 0, this.reach(), 0, 2 * Math.PI);
    Object.assign(context, { lineWidth: 0.003, strokeStyle: "#ffffff38" });
    context.stroke();
  }

  drawImage(context) {
    if (!this.image) return;
    if (this.image.paint) {
      context.translate(-0.5, -0.5);
      this.image.paint(context);
      return;
    }
    if (this.circular) {
      context.beginPath();
      context.arc(0, 0, 0.5, 0, 2 * Math.PI);
      context.clip();
    }
    const longer = Math.max(this.image.width, this.image.height);
    const [width, height] = [this.image.width / longer, this.image.height / longer];
    if (!this.circular) context.globalCompositeOperation = "screen";
    context.imageSmoothingQuality = "high";
    context.drawImage(this.image, -width / 2, -height / 2, width, height);
  }

  /** One arrow per frame: its direction, its size, and how certain it is. */
  drawFrames(context) {
    const colour = getComputedStyle(this.board).getPropertyValue("--frames");
    Object.assign(context, { lineCap: "round", lineJoin: "round" });
    for (const [x, y, scale, angle, confidence] of this.frames) {
      const length = 0.03 * (1 + 0.5 * Math.log2(Math.max(1, 56 * scale)));
      context.save();
      context.translate(x - 0.5, y - 0.5);
      context.rotate(angle);
      context.beginPath();
      context.moveTo(0, 0);
      context.lineTo(length, 0);
      context.moveTo(length - 0.014, -0.009);
      context.lineTo(length, 0);
      context.lineTo(length - 0.014, 0.009);
      context.globalAlpha = 0.2 + 0.8 * confidence;
      Object.assign(context, { lineWidth: 0.011, strokeStyle: "#12161b" });
      context.stroke();
      Object.assign(context, { lineWidth: 0.0055, strokeStyle: colour });
      context.stroke();
      context.restore();
    }
  }

  /** Distance of the handles from the centre. */
  reach() {
    const part = Math.log(this.scale / SCALES[0]) / Math.log(SCALES[1] / SCALES[0]);
    return REACH[0] + part * (REACH[1] - REACH[0]);
  }

  moveHandles() {
    const put = (handle, degrees, value, text) => {
      const angle = (degrees * Math.PI) / 180;
      handle.style.left = `${50 + 100 * this.reach() * Math.cos(angle)}%`;
      handle.style.top = `${50 + 100 * this.reach() * Math.sin(angle)}%`;
      handle.setAttribute("aria-valuenow", value);
      handle.setAttribute("aria-valuetext", text);
    };
    const [angle, percent] = [Math.round(this.angle), Math.round(100 * this.scale)];
    put(this.handles.rotate, this.angle - 90, angle, `${angle} degrees`);
    put(this.handles.scale, this.angle + 45, percent, `${percent} percent`);
  }
}
