// Where the image comes from: a test digit, a drawing or a photograph. Each becomes a canvas to show and
// a file to send.

/** Side of digits, in pixels: 8 for each pixel that the network sees. */
export const SIDE = 224;

/** A square canvas of `side` pixels, black. */
export function square(side) {
  const canvas = Object.assign(document.createElement("canvas"), { width: side, height: side });
  const context = canvas.getContext("2d");
  context.fillRect(0, 0, side, side);
  return canvas;
}

/** The canvas as a file to send. */
export const file = (canvas) => new Promise((resolve) => canvas.toBlob(resolve, "image/png"));

/** Grey bytes of a digit, 28 x 28, as a canvas. */
export function digitCanvas(bytes) {
  const canvas = square(28);
  const pixels = new ImageData(28, 28);
  bytes.forEach((value, i) => pixels.data.set([value, value, value, 255], 4 * i));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

/** A photograph, at most 512 pixels large. */
export async function photograph(blob) {
  const picture = await createImageBitmap(blob);
  const factor = Math.min(1, 512 / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(8, Math.round(factor * picture.width));
  canvas.height = Math.max(8, Math.round(factor * picture.height));
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** A photographed digit as a test digit looks: bright on black, upright in the middle, as large. */
export function digitOfPhotograph(photo) {
  const context = photo.getContext("2d");
  const { width, height } = photo;
  const pixels = context.getImageData(0, 0, width, height);
  const grey = new Float32Array(width * height);
  for (let i = 0; i < grey.length; i++) {
    const [r, g, b] = pixels.data.subarray(4 * i, 4 * i + 3);
    grey[i] = 0.299 * r + 0.587 * g + 0.114 * b;
  }
  // Most of the picture is paper: its shade is the median. The ink is far from it.
  const sorted = Float32Array.from(grey).sort();
  const paper = sorted[sorted.length >> 1];
  const darkest = paper - sorted[Math.floor(0.005 * sorted.length)];
  const brightest = sorted[Math.floor(0.995 * (sorted.length - 1))] - paper;
  const sign = darkest > brightest ? -1 : 1;
  const ink = Math.max(darkest, brightest, 1);
  for (let i = 0; i < grey.length; i++) {
    const value = Math.min(1, Math.max(0, ((sign * (grey[i] - paper)) / ink - 0.3) / 0.4));
    pixels.data.fill(255 * value, 4 * i, 4 * i + 3);
    pixels.data[4 * i + 3] = 255;
    grey[i] = value;
  }
  context.putImageData(pixels, 0, 0);
  const box = boundingBox(grey, width, height);
  const canvas = square(SIDE);
  if (!box) return canvas;
  const factor = (SIDE * 20) / 28 / Math.max(box.width, box.height);
  const target = canvas.getContext("2d");
  target.translate(SIDE / 2, SIDE / 2);
  target.scale(factor, factor);
  target.drawImage(photo, -box.x, -box.y);
  return canvas;
}

/** Size of the part that is not black, and its centre of mass. */
function boundingBox(grey, width, height) {
  let [left, top, right, bottom] = [width, height, -1, -1];
  let [sum, x, y] = [0, 0, 0];
  for (let i = 0; i < grey.length; i++) {
    if (grey[i] < 0.25) continue;
    const [column, row] = [i % width, Math.floor(i / width)];
    [left, top] = [Math.min(left, column), Math.min(top, row)];
    [right, bottom] = [Math.max(right, column), Math.max(bottom, row)];
    [sum, x, y] = [sum + grey[i], x + grey[i] * (column + 0.5), y + grey[i] * (row + 0.5)];
  }
  return right < left ? null : { width: right - left + 1, height: bottom - top + 1, x: x / sum, y: y / sum };
}
