// What the page asks the server for.

async function answered(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  throw new Error(body?.error?.message ?? `the server answered ${response.status}`);
}

const post = (path, body, signal) =>
  fetch(path, { method: "POST", body, signal, headers: { "Content-Type": body.type } }).then(answered);

/** What is served. */
export const model = async () => (await answered(await fetch("/v1/model"))).json();

/** A test digit: 28 x 28 grey bytes, and what it is. */
export async function digit(number) {
  const response = await answered(await fetch(`/page/digits/${number}`));
  return { bytes: new Uint8Array(await response.arrayBuffer()), label: response.headers.get("x-label") };
}

/** An image under a transform, as both networks see it. */
export const view = async (image, { angle, scale }, signal) =>
  (await post(`/page/view?angle=${angle}&scale=${scale}`, image, signal)).json();

/** The probability of each class at `count` angles. */
export const rotations = async (image, { from, step, count, scale }, signal) =>
  (await post(`/page/rotations?from=${from}&step=${step}&count=${count}&scale=${scale}`, image, signal)).json();
