// Bars as pixels. The work is bounded by the number of bars in sight and the size of the picture.

const IDLE = ["#f1f1ef", "#26282c"];
const GAP = ["#ffffff", "#17181b"];
const MOVING = ["#444444", "#0b0c0e"];
const AWAY = ["#d9d3cc", "#3a3531"];

function pixelOf(colour) {
  const text = colour[isDark() ? 1 : 0];
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  return pixel(red, green, blue);
}

const pixel = (red, green, blue) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const darker = (each) => pixel(0.72 * (each & 255), 0.72 * (each >> 8 & 255), 0.72 * (each >> 16 & 255));

const lightness = (each) => (0.3 * (each & 255) + 0.59 * (each >> 8 & 255) + 0.11 * (each >> 16 & 255)) / 255;

function paintOf(palette) {
  const fills = Uint32Array.from(palette, pixelOf);
  return { fills, edges: fills.map(darker), idle: pixelOf(IDLE), gap: pixelOf(GAP), away: pixelOf(AWAY), moving: pixelOf(MOVING) };
}

// `view` has from, to (ticks), top (rows) and rowHeight (pixels of the picture).
function paintBars(picture, scene, view, paint, paintOfBar) {
  const pixels = new Uint32Array(picture.data.buffer);
  const { width, height } = picture;
  const scale = width / (view.to - view.from);
  const last = Math.min(scene.rows - 1, Math.floor(view.top + height / view.rowHeight));
  const first = Math.max(0, Math.floor(view.top));
  const gap = view.rowHeight >= 5 ? 1 : 0;
  const yOf = (row) => Math.round((row - view.top) * view.rowHeight);
  pixels.fill(paint.gap);
  for (let row = first; row <= last; row++) fillRows(pixels, picture, 0, width, yOf(row), yOf(row + 1) - gap, paint.idle);
  const lastAt = new Float64Array(256).fill(-1); // by part of a slot: where the last narrow bar was
  let drawn = 0;
  scene.each(first, last, view.from, view.to, (i, row) => {
    const left = Math.max(0, Math.floor((scene.from[i] - view.from) * scale));
    const right = Math.min(width, Math.max(left + 1, Math.floor((scene.to[i] - view.from) * scale)));
    if (right - left === 1 && scene.height[i] === 1) {
      const [part, at] = [(scene.place[i] * 16 + scene.of[i]) & 255, row * width + left];
      if (lastAt[part] === at) return; // one of many in this pixel
      lastAt[part] = at;
    }
    const top = yOf(row + scene.place[i] / scene.of[i]);
    const bottom = scene.of[i] > 1 ? yOf(row + (scene.place[i] + 1) / scene.of[i]) : yOf(row + scene.height[i]) - gap;
    const kind = paintOfBar(i);
    fillRows(pixels, picture, left, right, top, Math.max(bottom, top + 1), paint.fills[kind]);
    if (scene.trains) {
      const trains = Math.min(right, Math.floor((scene.instants[scene.trains[i]] - view.from) * scale));
      if (trains > left) fillRows(pixels, picture, left, trains, top, bottom, paint.moving);
    }
    if (right - left > 3 && scene.from[i] >= view.from) fillRows(pixels, picture, left, left + 1, top, bottom, paint.edges[kind]);
    drawn += 1;
  });
  return drawn;
}

function fillRows(pixels, { width, height }, left, right, top, bottom, value) {
  const end = Math.min(height, bottom) * width;
  for (let line = Math.max(0, top) * width; line < end; line += width) {
    if (right - left > 12) pixels.fill(value, line + left, line + right);
    else for (let at = line + left; at < line + right; at++) pixels[at] = value;
  }
}

// Nodes that are away, and work that was lost: stripes over everything.
function paintAway(picture, scene, view, paint, regions) {
  const pixels = new Uint32Array(picture.data.buffer);
  const { width, height } = picture;
  const scale = width / (view.to - view.from);
  for (const { from, to, row, rows } of regions) {
    const [left, right] = [from, to].map((at) => Math.min(width, Math.max(0, Math.round((at - view.from) * scale))));
    const [top, bottom] = [row, row + rows].map((at) => Math.min(height, Math.max(0, Math.round((at - view.top) * view.rowHeight))));
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++) if ((x + y) % 8 < 4) pixels[y * width + x] = paint.away;
    }
  }
}
