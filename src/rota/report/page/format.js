// Elements, and numbers as people say them.

const SVG = "http://www.w3.org/2000/svg";
const UNITS = [["days", 86400], ["h", 3600], ["min", 60], ["s", 1], ["ms", 1e-3], ["µs", 1e-6]];
const LOG_TICKS = [[1e-3, "1 ms"], [1e-2, "10 ms"], [0.1, "0.1 s"], [1, "1 s"], [10, "10 s"], [60, "1 min"],
  [600, "10 min"], [3600, "1 h"], [21600, "6 h"], [86400, "1 day"], [604800, "1 week"], [2592000, "30 days"],
  [31536000, "1 year"]];

// Text is always text: names from results are never read as markup.
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A colour is a pair: on a light page, and on a dark one.
const themed = ([light, dark]) => `light-dark(${light}, ${dark})`;

let printing = false; // on paper, which is light

function isDark() {
  if (printing) return false;
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function chip(colour) {
  const made = element("span", { className: "chip" });
  made.style.background = themed(colour);
  return made;
}

function significant(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size >= digits - 1) return Math.round(value).toLocaleString("en");
  if (size < -6) return value.toExponential(digits - 1);
  return String(Number(value.toFixed(digits - 1 - size)));
}

// `2.5 h`: in the largest unit of which there are one and a half or more.
function duration(seconds, digits = 3) {
  if (!(seconds > 0)) return "0 s";
  const [name, size] = UNITS.find(([, each]) => seconds >= 1.5 * each) ?? UNITS.at(-1);
  return `${significant(seconds / size, digits)} ${name}`;
}

// `1.32 – 3.02 days`: both in the same unit, with as many digits as it takes to tell them apart.
function stretch(from, to) {
  const [name, size] = UNITS.find(([, each]) => to >= 1.5 * each) ?? UNITS.at(-1);
  const digits = Math.min(8, Math.max(0, 2 - Math.floor(Math.log10((to - from) / size || 1))));
  const [low, high] = [from, to].map((at) => Number((at / size).toFixed(digits)).toLocaleString("en", { maximumFractionDigits: 8 }));
  return `${low} – ${high} ${name}`;
}

const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}%`;
const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

function shown(value, kind) {
  if (value === null || value === undefined) return "–";
  if (kind === "time") return duration(value);
  if (kind === "share") return percent(value, 1);
  return significant(value, 4);
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
}

// Marks of an axis: [where, what is written there].
function ticksOf(axis, low, high, most) {
  if (axis.names.length) return axis.names.map((name, number) => [axis.places[number], name]);
  if (axis.log) return logTicks(low, high, most, axis.kind);
  if (axis.kind === "time") return timeTicks(low, high, most);
  const step = niceStep((high - low) / most);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + (axis.kind === "share" ? 2 : 0) + 1e-9));
  const text = (value) => axis.kind === "share" ? percent(value, digits)
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return steps(low, high, step).map((at) => [at, text(at || 0)]);
}

function timeTicks(low, high, most) {
  const [name, size] = UNITS.find(([, each]) => high >= 2 * each) ?? UNITS.at(-1);
  const step = niceStep((high - low) / most / size);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return steps(low / size, high / size, step).map((at) => [at * size, `${at.toFixed(digits)} ${name}`]);
}

function steps(low, high, step) {
  const found = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count++) found.push(count * step || 0);
  return found;
}

function powers(digits) {
  const found = [];
  for (let power = -9; power < 12; power++) for (const digit of digits) found.push(Number(`${digit}e${power}`));
  return found;
}

function logTicks(low, high, most, kind) {
  const within = (at) => at >= low * 0.999 && at <= high * 1.001;
  let found = kind === "time" ? LOG_TICKS.filter(([at]) => within(at)) : powers([1]).filter(within).map((at) => [at, shown(at, kind)]);
  if (found.length < 3) found = powers([1, 2, 5]).filter(within).map((at) => [at, shown(at, kind)]);
  while (found.length > most) found = found.filter((_, number) => number % 2 === 0);
  return found;
}

// ---- what is said of whatever the pointer is at

const tip = document.getElementById("tip");

function showTip(x, y, ...children) {
  tip.replaceChildren(...children);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const room = { x: document.documentElement.clientWidth, y: innerHeight };
  const left = x + 16 + width > room.x ? x - 16 - width : x + 16;
  const top = y + 16 + height > room.y ? y - 16 - height : y + 16;
  tip.style.left = `${Math.max(4, Math.min(left, room.x - width - 4))}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
  tip.hidden = true;
}
