// The page: one image, its transform, and what both networks make of it.

import { Bars } from "./bars.js";
import { Drawing } from "./drawing.js";
import { Polar } from "./polar.js";
import * as server from "./server.js";
import { digitCanvas, digitOfPhotograph, file, photograph } from "./source.js";
import { Stage } from "./stage.js";

/** A test digit of each class. */
const DIGITS = [3, 2, 1, 18, 4, 15, 11, 0, 61, 7];
/** Angles of the round plots, and how many of them are asked for at a time. */
const STEPS = 72;
const CHUNK = 18;
/** Waiting times, in milliseconds: for the next stroke, for the size to settle, before it is said aloud. */
const PEN_PAUSE = 450;
const SETTLE = 250;
const SAY = 900;
/** Degrees per second. */
const SPIN = 30;

const $ = (id) => document.getElementById(id);
const model = await server.model();
const cards = ["served", "plain"].map((key) => {
  const card = $(key);
  const title = card.querySelector("h2");
  if (key === "served" && model.equivariance === "cnn") title.textContent = "CNN";
  const options = { classes: model.classes, title: title.textContent, steps: STEPS };
  return { key, card, title: title.textContent, bars: new Bars(card, model.classes), polar: new Polar(card.querySelector(".polar"), options) };
});

// The image: its file, the class that it has if that is known, and what was found out about it.
let image = null;
let drawing = null;
let penTimer, plotTimer, sayTimer;
let plotting = new AbortController();

const stage = new Stage($("board"), {
  changed: () => moved(),
  pen: {
    down(point) {
      if (!model.reads_digits) return false;
      if (!drawing) empty();
      clearTimeout(penTimer);
      document.body.dataset.state = "drawing";
      $("hint").hidden = true;
      drawing.begin(point());
      stage.draw();
      return true;
    },
    move(point) {
      drawing.extend(point);
      stage.draw();
    },
    up() {
      penTimer = setTimeout(finishDrawing, PEN_PAUSE);
    },
  },
});
stage.side = model.input.side / Math.max(...model.input.canvas);
stage.circular = model.input.circular_mask;

/** An empty board to draw on. */
function empty() {
  stop();
  drawing = new Drawing();
  image = null;
  plotting.abort();
  Object.assign(stage, { image: drawing, frames: [] });
  stage.place(0, 1);
  pressed(null);
  $("hint").hidden = false;
  showTransform();
}

async function finishDrawing() {
  drawing.normalise();
  stage.draw();
  await use(drawing, drawing.canvas(), null);
}

/** Takes an image: what is shown of it, what is sent, and its class if that is known. */
async function use(shown, canvas, label) {
  if (shown !== drawing) drawing = null;
  $("hint").hidden = true;
  $("message").textContent = "";
  stage.image = shown;
  stage.draw();
  const taken = { file: await file(canvas), label, upright: null, meant: null };
  image = taken;
  await look();
  plotSoon(0);
}

// Views: one request at a time, always for the present transform.
let looking = false;
let again = false;

async function look() {
  again = true;
  if (looking) return;
  looking = true;
  document.body.dataset.state = "looking";
  try {
    while (again && image) {
      again = false;
      const [taken, place] = [image, { angle: stage.angle.toFixed(2), scale: stage.scale.toFixed(4) }];
      if (!taken.upright) {
        const upright = await server.view(taken.file, { angle: 0, scale: 1 });
        taken.upright = upright;
        taken.meant = cards.map(({ key }) => taken.label ?? best(upright[key].probabilities));
        if (taken === image) cards.forEach(({ key, card }) => paintFeatures(card.querySelector(".upright"), upright, key));
      }
      const view = await server.view(taken.file, place);
      if (taken === image) show(view);
    }
    $("message").textContent = "";
  } catch (error) {
    $("message").textContent = `Not computed: ${error.message}.`;
  } finally {
    looking = false;
    document.body.dataset.state = "ready";
  }
}

const best = (probabilities) => model.classes[probabilities.indexOf(Math.max(...probabilities))];

function show(view) {
  stage.frames = view.frames;
  stage.draw();
  const said = cards.map(({ key, card, title, bars }, i) => {
    const answer = bars.show(view[key].probabilities, { expected: image.meant[i], known: image.label !== null });
    paintFeatures(card.querySelector(".now"), view, key);
    const agree = agreement(image.upright[key].features, view[key].features);
    card.querySelector(".features b").textContent = `${Math.max(0, Math.round(100 * agree))} %`;
    return `${title} reads ${answer.name}, ${Math.round(100 * answer.share)} percent.`;
  });
  clearTimeout(sayTimer);
  sayTimer = setTimeout(() => ($("live").textContent = said.join(" ")), SAY);
}

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

function paintFeatures(canvas, view, key) {
  const [colours, { side }] = [bytes(view[key].features), view];
  const pixels = new ImageData(side, side);
  for (let i = 0; i < side * side; i++) pixels.data.set([...colours.subarray(3 * i, 3 * i + 3), 255], 4 * i);
  canvas.width = canvas.height = side;
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

/** The correlation of two pictures, 1 if they are the same. */
function agreement(first, second) {
  const [a, b] = [bytes(first), bytes(second)];
  const mean = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;
  const [ma, mb] = [mean(a), mean(b)];
  let [ab, aa, bb] = [1e-9, 1e-9, 1e-9];
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] - ma, b[i] - mb];
    [ab, aa, bb] = [ab + x * y, aa + x * x, bb + y * y];
  }
  return ab / Math.sqrt(aa * bb);
}

/** The round plots depend on the image and its size. */
function plotSoon(wait) {
  clearTimeout(plotTimer);
  plotting.abort();
  plotTimer = setTimeout(plot, wait);
}

async function plot() {
  if (!image) return;
  plotting = new AbortController();
  const { signal } = plotting;
  const [taken, scale, step] = [image, stage.scale.toFixed(4), 360 / STEPS];
  const rows = { served: [], plain: [] };
  try {
    for (let first = 0; first < STEPS; first += CHUNK) {
      const part = await server.rotations(taken.file, { from: first * step, step, count: CHUNK, scale }, signal);
      if (signal.aborted) return;
      cards.forEach(({ key, polar }, i) => {
        rows[key].push(...part[key]);
        polar.show(rows[key], model.classes.indexOf(taken.meant[i]));
      });
    }
    document.body.dataset.plotted = `${taken.meant[0]} ${scale}`;
  } catch (error) {
    if (error.name !== "AbortError") $("message").textContent = `Not computed: ${error.message}.`;
  }
}

let plottedScale = 1;

/** The transform has changed. */
function moved() {
  showTransform();
  look();
  if (stage.scale !== plottedScale) {
    plottedScale = stage.scale;
    plotSoon(SETTLE);
  }
}

function showTransform() {
  $("angle").value = Math.round(stage.angle);
  $("scale").value = Math.round(100 * stage.scale);
  $("angle-value").textContent = `${Math.round(stage.angle)}°`;
  $("scale-value").textContent = `${Math.round(100 * stage.scale)} %`;
  cards.forEach(({ polar }) => polar.turn(stage.angle));
}

// Spinning.
let spinning = 0;

function stop() {
  cancelAnimationFrame(spinning);
  spinning = 0;
  $("spin").textContent = "Spin";
  $("spin").setAttribute("aria-pressed", "false");
}

function spin() {
  if (spinning) return stop();
  $("spin").textContent = "Stop";
  $("spin").setAttribute("aria-pressed", "true");
  let before = performance.now();
  const turn = (now) => {
    stage.place(stage.angle + (SPIN * Math.min(100, now - before)) / 1000, stage.scale);
    before = now;
    moved();
    spinning = requestAnimationFrame(turn);
  };
  spinning = requestAnimationFrame(turn);
}

$("spin").addEventListener("click", spin);
$("reset").addEventListener("click", () => {
  stop();
  stage.place(0, 1);
  moved();
});
$("angle").addEventListener("input", (event) => {
  stage.place(Number(event.target.value), stage.scale);
  moved();
});
$("scale").addEventListener("input", (event) => {
  stage.place(stage.angle, Number(event.target.value) / 100);
  moved();
});
$("show-frames").addEventListener("change", (event) => {
  stage.showFrames = event.target.checked;
  stage.draw();
});
$("clear").addEventListener("click", empty);

// Test digits.
function pressed(button) {
  for (const other of $("digits").children) other.setAttribute("aria-pressed", String(other === button));
}

async function pick(number, button) {
  clearTimeout(penTimer);
  try {
    const { bytes, label } = await server.digit(number);
    pressed(button);
    const canvas = digitCanvas(bytes);
    await use(canvas, canvas, label);
  } catch (error) {
    $("message").textContent = `No digit: ${error.message}.`;
  }
}

async function offerDigits() {
  const buttons = await Promise.all(
    DIGITS.map(async (number) => {
      const { bytes, label } = await server.digit(number);
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.setAttribute("aria-label", `Digit ${label}`);
      button.setAttribute("aria-pressed", "false");
      button.append(digitCanvas(bytes));
      button.addEventListener("click", () => pick(number, button));
      return button;
    }),
  );
  $("digits").append(...buttons);
  return buttons;
}

$("another").addEventListener("click", () => pick(Math.floor(10000 * Math.random()), null));

// Photographs.
async function take(blob) {
  stop();
  clearTimeout(penTimer);
  try {
    const photo = await photograph(blob);
    pressed(null);
    const canvas = model.reads_digits ? digitOfPhotograph(photo) : photo;
    stage.place(0, 1);
    showTransform();
    await use(canvas, canvas, null);
  } catch {
    $("message").textContent = `${blob.name ?? "The file"}: expected a picture that this browser can show.`;
  }
}

$("file").addEventListener("change", (event) => event.target.files[0] && take(event.target.files[0]));
const board = $("board");
board.addEventListener("dragover", (event) => {
  event.preventDefault();
  board.classList.add("dropping");
});
board.addEventListener("dragleave", () => board.classList.remove("dropping"));
board.addEventListener("drop", (event) => {
  event.preventDefault();
  board.classList.remove("dropping");
  if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
});

// The models, as they are.
const number = new Intl.NumberFormat("en");
const about = ({ name, architecture, parameters, weights }) =>
  `${name} (${architecture}, ${number.format(parameters)} parameters, ${weights})`;
$("about-models").textContent = `SREN: ${about(model)}. Plain CNN: ${about(model.plain)}. sren ${model.version}.`;

// Said of the bundled networks only.
$("claim").hidden = model.name !== "mnist-sren" || model.plain.name !== "mnist-cnn";

if (model.reads_digits) {
  const buttons = await offerDigits();
  stage.place(75, 1);
  showTransform();
  await pick(DIGITS[4], buttons[4]);
} else {
  $("source-legend").textContent = "Drop a photograph on the board, or choose one";
  for (const id of ["digits", "another", "clear"]) $(id).hidden = true;
  $("hint").textContent = "Drop a photograph here";
  showTransform();
}
