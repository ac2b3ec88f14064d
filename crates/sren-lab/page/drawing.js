// A drawing: strokes of a pen, brought to the size and place that the digits of MNIST have.

import { SIDE, square } from "./source.js";

/** Width of the pen, and longer side of a digit, in parts of the square. */
const PEN = 2.6 / 28;
const DIGIT = 20 / 28;

export class Drawing {
  /** Points `[x, y]` of each stroke, in parts of the square. */
  strokes = [];

  begin(point) {
    this.strokes.push([point]);
  }

  extend(point) {
    this.strokes.at(-1).push(point);
  }

  /** Draws the strokes in a square of side 1. */
  paint(context) {
    Object.assign(context, { lineWidth: PEN, lineCap: "round", lineJoin: "round", strokeStyle: "#fff" });
    for (const stroke of this.strokes) {
      context.beginPath();
      // A point is a stroke, too.
      context.moveTo(...stroke[0]);
      for (const point of [...stroke.slice(1), stroke.at(-1)]) context.lineTo(point[0] + 1e-4, point[1]);
      context.stroke();
    }
  }

  /** Moves and scales the strokes: the longer side as large as that of a digit, the mass in the middle. */
  normalise() {
    const points = this.strokes.flat();
    const span = (axis) => {
      const values = points.map((point) => point[axis]);
      return Math.max(...values) - Math.min(...values);
    };
    const factor = Math.min(6, (DIGIT - PEN) / Math.max(span(0), span(1), 1e-3));
    // The mass of a stroke is its length.
    let [mass, x, y] = [1e-6, 1e-6 * points[0][0], 1e-6 * points[0][1]];
    for (const stroke of this.strokes) {
      for (let i = 1; i < stroke.length; i++) {
        const [a, b] = [stroke[i - 1], stroke[i]];
        const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
        [mass, x, y] = [mass + length, x + (length * (a[0] + b[0])) / 2, y + (length * (a[1] + b[1])) / 2];
      }
    }
    const moved = (point) => [0.5 + factor * (point[0] - x / mass), 0.5 + factor * (point[1] - y / mass)];
    this.strokes = this.strokes.map((stroke) => stroke.map(moved));
  }

  /** The drawing as an image. */
  canvas() {
    const canvas = square(SIDE);
    const context = canvas.getContext("2d");
    context.scale(SIDE, SIDE);
    this.paint(context);
    return canvas;
  }
}
