// One visit of the page: `node visit.mjs NAME ADDRESS`. Fails if the page does not do what it should,
// and on any error in the browser's console, which includes violations of the security policy.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";

const { CHROMIUM, NODE_MODULES, PICTURES } = process.env;
const { chromium } = createRequire(path.join(NODE_MODULES, "_"))("playwright-core");
const [name, address] = process.argv.slice(2);

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const errors = [];

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(address) && !/^(data|blob):/.test(url)) errors.push(`loads ${url}`);
  });
  await page.goto(address);
  await page.waitForFunction(() => document.body.dataset.plotted, null, { timeout: 60_000 });
  return page;
}

/** The class that a network reads of the image as it stands. */
async function reads(page, network) {
  await page.waitForFunction(() => document.body.dataset.state === "ready", null, { timeout: 60_000 });
  return page.textContent(`#${network} .answer .class`);
}

/** The share of all angles at which a network reads the digit that is meant. */
async function share(page, network) {
  const caption = await page.textContent(`#${network} .polar figcaption`);
  return Number(caption.match(/(\d+) %/)[1]);
}

/** Waits until the round plots are those of this class. */
const plotted = (page, meant) =>
  page.waitForFunction((meant) => document.body.dataset.plotted?.startsWith(`${meant} `), meant, { timeout: 60_000 });

/** Draws strokes, in parts of the board. */
async function draw(page, strokes) {
  const box = await page.locator("#board").boundingBox();
  const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
  for (const [first, ...rest] of strokes) {
    await page.mouse.move(...at(first));
    await page.mouse.down();
    for (const point of rest) await page.mouse.move(...at(point), { steps: 6 });
    await page.mouse.up();
  }
}

/** Drags the handle around the centre to an angle in degrees. */
async function rotate(page, degrees) {
  const [board, handle] = await Promise.all(["#board", "#rotate-handle"].map((id) => page.locator(id).boundingBox()));
  const centre = [board.x + board.width / 2, board.y + board.height / 2];
  const start = [handle.x + handle.width / 2, handle.y + handle.height / 2];
  const radius = Math.hypot(start[0] - centre[0], start[1] - centre[1]);
  await page.mouse.move(...start);
  await page.mouse.down();
  const angle = ((degrees - 90) * Math.PI) / 180;
  await page.mouse.move(centre[0] + radius * Math.cos(angle), centre[1] + radius * Math.sin(angle), { steps: 8 });
  await page.mouse.up();
}

const visits = {
  async draw() {
    const page = await open();
    await page.click("#clear");
    await draw(page, [[[0.33, 0.3], [0.64, 0.3], [0.5, 0.5], [0.42, 0.74]]]);
    await plotted(page, "7");
    assert.match(await page.textContent("#served .verdict"), /as upright/);
    assert.equal(await reads(page, "served"), "7");
    assert.equal(await reads(page, "plain"), "7", "upright, the plain network reads it, too");
    for (const degrees of [60, 135, -120]) {
      await rotate(page, degrees);
      assert.equal(await page.textContent("#angle-value"), `${degrees}°`);
      assert.equal(await reads(page, "served"), "7", `at ${degrees} degrees`);
    }
    assert.notEqual(await reads(page, "plain"), "7", "at -120 degrees the plain network does not");
    // A second stroke belongs to the same drawing, in the place where it is seen.
    await page.click("#reset");
    await reads(page, "served");
    const features = () => page.evaluate(() => document.querySelector("#served .upright").toDataURL());
    const before = await features();
    await draw(page, [[[0.44, 0.55], [0.56, 0.55]]]);
    await reads(page, "served");
    assert.notEqual(await features(), before, "the second stroke is not seen");
    await page.screenshot({ path: path.join(PICTURES, "drawing.png") });
  },

  async rotate() {
    const page = await open();
    await page.click("button[aria-label='Digit 2']");
    await plotted(page, "2");
    assert.ok((await share(page, "served")) >= 90, "SREN's plot is a circle");
    assert.ok((await share(page, "plain")) <= 60, "the CNN's is a flower");
    let wrong = 0;
    for (let degrees = -180; degrees < 180; degrees += 45) {
      await page.locator("#angle").fill(String(degrees));
      assert.equal(await reads(page, "served"), "2", `at ${degrees} degrees`);
      wrong += (await reads(page, "plain")) !== "2";
    }
    assert.ok(wrong >= 3, `the plain network is wrong at ${wrong} of 8 angles`);
    // Sizes: the plots follow.
    await page.locator("#angle").fill("0");
    await page.evaluate(() => delete document.body.dataset.plotted);
    await page.locator("#scale").fill("160");
    await plotted(page, "2");
    assert.equal(await reads(page, "served"), "2");
    // Spinning goes on by itself, and stops.
    await page.click("#spin");
    await page.waitForTimeout(1500);
    const turned = Number.parseInt(await page.textContent("#angle-value"), 10);
    assert.ok(turned > 15, `turned to ${turned} degrees`);
    await page.click("#spin");
    const stopped = await page.textContent("#angle-value");
    assert.equal(await reads(page, "served"), "2");
    assert.equal(await page.textContent("#angle-value"), stopped);
    // Features: SREN's are the same, those of the plain network are not.
    await page.click("#reset");
    await page.locator("#angle").fill("90");
    await reads(page, "served");
    const agree = async (network) => Number.parseInt(await page.textContent(`#${network} .features b`), 10);
    assert.ok((await agree("served")) >= 99, "at 90 degrees pixels only change places");
    assert.ok((await agree("plain")) <= 80);
    await page.evaluate(() => delete document.body.dataset.plotted);
    await page.click("#another");
    await page.waitForFunction(() => document.body.dataset.plotted, null, { timeout: 60_000 });
    assert.equal(await page.textContent("#message"), "");
  },

  async photograph() {
    const page = await open();
    // A 3 in dark ink on uneven paper.
    const photo = await page.evaluate(async () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 480 });
      const context = canvas.getContext("2d");
      const paper = context.createLinearGradient(0, 0, 640, 480);
      paper.addColorStop(0, "#e8e2d4");
      paper.addColorStop(1, "#c9c2b2");
      context.fillStyle = paper;
      context.fillRect(0, 0, 640, 480);
      Object.assign(context, { strokeStyle: "#27324a", lineWidth: 16, lineCap: "round" });
      context.beginPath();
      context.arc(330, 190, 50, -2.6, 1.5);
      context.stroke();
      context.beginPath();
      context.arc(330, 290, 55, -1.6, 2.5);
      context.stroke();
      return canvas.toDataURL("image/jpeg").split(",")[1];
    });
    const file = { name: "three.jpg", mimeType: "image/jpeg", buffer: Buffer.from(photo, "base64") };
    await page.setInputFiles("#file", file);
    await plotted(page, "3");
    assert.equal(await reads(page, "served"), "3");
    await page.locator("#angle").fill("140");
    assert.equal(await reads(page, "served"), "3");
    await page.screenshot({ path: path.join(PICTURES, "photograph.png") });
    await page.setInputFiles("#file", { ...file, name: "none.jpg", buffer: Buffer.from("no picture") });
    await page.waitForFunction(() => document.getElementById("message").textContent.includes("none.jpg"));
  },

  async appearance() {
    for (const [width, height] of [[1280, 900], [390, 844]]) {
      for (const colorScheme of ["light", "dark"]) {
        const page = await open({ viewport: { width, height }, colorScheme, hasTouch: width < 500, deviceScaleFactor: 2 });
        await reads(page, "served");
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${wide} pixels too wide at ${width}`);
        const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const bright = paper.match(/\d+/g).reduce((sum, v) => sum + Number(v), 0) > 380;
        assert.equal(bright, colorScheme === "light", paper);
        await page.screenshot({ path: path.join(PICTURES, `page-${width}-${colorScheme}.png`), fullPage: true });
        await page.context().close();
      }
    }
    // By keyboard: every control is reached and has a name, and the handles move.
    const page = await open();
    const names = new Set();
    for (let i = 0; i < 30; i++) {
      await page.keyboard.press("Tab");
      const [id, label] = await page.evaluate(() => {
        const control = document.activeElement;
        const label = control.getAttribute("aria-label") ?? control.labels?.[0]?.textContent ?? control.textContent;
        return [control.id || control.tagName, label?.trim() ?? ""];
      });
      assert.ok(label || id === "BODY", `${id} has no name`);
      names.add(id);
    }
    for (const id of ["rotate-handle", "scale-handle", "angle", "scale", "spin", "reset", "show-frames", "another", "clear", "file"]) {
      assert.ok(names.has(id), `${id} is not reached: ${[...names]}`);
    }
    await page.click("#reset");
    await page.focus("#rotate-handle");
    for (let i = 0; i < 9; i++) await page.keyboard.press("ArrowRight");
    assert.equal(await page.getAttribute("#rotate-handle", "aria-valuetext"), "45 degrees");
    await page.focus("#scale-handle");
    for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowUp");
    assert.equal(await page.textContent("#scale-value"), "122 %");
    assert.equal(await reads(page, "served"), "4");
    // It is said aloud.
    await page.waitForFunction(() => /SREN reads 4, \d+ percent\. Plain CNN reads/.test(document.getElementById("live").textContent));
  },
};

try {
  await visits[name]();
  assert.deepEqual(errors, []);
} finally {
  await browser.close();
}
