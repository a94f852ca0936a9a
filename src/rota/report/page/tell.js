// What is known of a bar: what it is, from when to when, what came before and after, and why.

// Lines of text about a job on its slots.
function tellJob(block, items, scene, bar) {
  const kinds = block.kinds;
  const job = scene.item[bar];
  const seconds = (tick) => tick * scene.tick;
  const life = lifeOf(scene, job);
  const placed = life.findLastIndex(({ kind, at }) => at <= scene.from[bar] && [kinds.started, kinds.moved, kinds.resized].includes(kind));
  const ended = life.findIndex(({ kind }, number) => number > placed && [kinds.paused, kinds.moved, kinds.resized, kinds.finished, kinds.failed, kinds.attempt_failed].includes(kind));
  const paced = life.findLast(({ kind, at }) => at <= scene.from[bar] && [kinds.started, kinds.moved, kinds.resized, kinds.paced].includes(kind));
  const from = life[placed]?.at ?? scene.from[bar];
  const to = life[ended]?.at ?? scene.to[bar];
  return {
    title: block.names[job],
    what: `${block.legend[items.paint[job]]}, ${counted(Number(significant(items.gpus[job])), "GPU")}; ${duration(items.solo_s[job])} alone`,
    lines: [
      ["where", placeOf(block, scene, bar)],
      ["when", `${stretch(seconds(from), seconds(to))}: for ${duration(seconds(to - from))}`],
      ["step time", paced ? `${significant(paced.value)} s per iteration` : ""],
      ["shares with", companions(block, scene, bar)],
      ["before", before(block, scene, bar, life, placed, seconds)],
      ["after", after(block, scene, bar, life, ended, kinds)],
    ],
    rule: scene.about && `${scene.name}: ${scene.about}`,
  };
}

function lifeOf(scene, job) {
  const life = [];
  for (let i = scene.event[job]; i < scene.event[job + 1]; i++) {
    life.push({ at: scene.instants[scene.event_at[i]], kind: scene.event_kind[i], value: scene.values[scene.event_value[i]] });
  }
  return life;
}

function before(block, scene, bar, life, placed, seconds) {
  const kinds = block.kinds;
  const aside = [kinds.paced, kinds.rolled_back];
  const [here, last] = [life[placed], life.slice(0, placed).findLast(({ kind }) => !aside.includes(kind))];
  if (!here || !last) return "";
  const since = seconds(here.at - last.at);
  const waited = since > 0 ? `after waiting ${duration(since)}` : "at once";
  const from = here.at === scene.from[bar] ? predecessors(block, scene, bar) : "";
  if (here.kind === kinds.resized) return `resized${from}`;
  if (here.kind === kinds.moved) return `migrated here from other slots${from}`;
  if (last.kind === kinds.attempt_failed) return `tried again ${waited} (${significant(last.value, 2)}% left)${from}`;
  if (last.kind === kinds.paused) return `resumed ${waited} (paused with ${significant(last.value, 2)}% left)${from}`;
  return `started ${waited}${from}`;
}

function after(block, scene, bar, life, ended, kinds) {
  const then = life[ended];
  if (!then) return "";
  const back = life[ended - 1]?.kind === kinds.rolled_back ? `; ${significant(life[ended - 1].value, 2)}% lost since its last checkpoint` : "";
  if (then.kind === kinds.finished) return "finished";
  if (then.kind === kinds.failed) return then.value > 0 ? `failed with ${significant(then.value, 2)}% left: its attempts were used up` : "failed for good";
  if (then.kind === kinds.attempt_failed) return `failed with ${significant(then.value, 2)}% left, to be tried again${back}`;
  if (then.kind === kinds.resized) return `resized${back}`;
  if (then.kind === kinds.moved) return `migrated to other slots${back}`;
  const next = then.at === scene.to[bar] ? neighbours(scene, bar, (other) => scene.from[other] === scene.to[bar]) : [];
  const whom = next.length ? `; preempted by ${named(block, next)}` : "";
  return `paused with ${significant(then.value, 2)}% left${whom}${back}`;
}

// What was on these slots until this bar began, and why not any longer.
function predecessors(block, scene, bar) {
  const left = neighbours(scene, bar, (other) => scene.to[other] === scene.from[bar]);
  if (!left.length) return "";
  const kind = lifeOf(scene, left[0]).findLast(({ at }) => at === scene.from[bar])?.kind;
  const why = { [block.kinds.paused]: "preempted by it", [block.kinds.finished]: "finished", [block.kinds.moved]: "migrated", [block.kinds.failed]: "failed", [block.kinds.attempt_failed]: "failed" }[kind];
  return why ? `; before it: ${named(block, left)}, ${why}` : "";
}

// Other jobs or trials on the same rows that fulfil a condition, each once.
function neighbours(scene, bar, condition) {
  const row = scene.rowOf(bar);
  const found = new Set();
  scene.each(row, row + scene.height[bar] - 1, scene.from[bar] - 1, scene.to[bar] + 1, (other) => {
    if (scene.item[other] !== scene.item[bar] && condition(other)) found.add(scene.item[other]);
  });
  return [...found];
}

function companions(block, scene, bar) {
  if (scene.of[bar] === 1) return "";
  return named(block, neighbours(scene, bar, (other) => scene.from[other] < scene.to[bar] && scene.to[other] > scene.from[bar]));
}

function named(block, items) {
  const names = items.slice(0, 3).map((item) => block.names[item]);
  return names.join(", ") + (items.length > 3 ? ` and ${items.length - 3} more` : "");
}

function placeOf(block, scene, bar) {
  const row = scene.rowOf(bar);
  const { name, slot } = block.rowNames[row];
  const last = slot + scene.height[bar] - 1;
  return slot < 0 ? name : `${name}, slot ${slot}${last > slot ? `–${last}` : ""}`;
}

// Lines of text about an interval of a trial.
function tellTrial(block, items, scene, bar) {
  const seconds = (from, to) => (to - from) * scene.tick;
  const [from, to] = [scene.from[bar], scene.to[bar]];
  const moving = seconds(from, scene.instants[scene.trains[bar]]);
  const metric = scene.metric[bar];
  const then = ["", `continued as a clone of trial ${scene.donor[bar]}, which was better`, "was stopped: others were better", "was done", `its network grew before its next interval: change ${scene.donor[bar]}`][scene.then[bar]];
  const list = scene.listed[bar];
  return {
    title: `trial ${scene.item[bar]}`,
    what: Number.isNaN(metric) ? "" : `${significant(metric, 4)} (${block.metric}) afterwards`,
    lines: [
      ["where", placeOf(block, scene, bar)],
      ["when", `${stretch(seconds(0, from), seconds(0, to))}: for ${duration(seconds(from, to))}`],
      ["trained", `${counted(scene.steps[bar], "step")}${moving > 0 ? `, after ${duration(moving)} of dispatch and transfer` : ""}`],
      ["assignment", list > 1 ? `of ${list} trials` : ""],
      ["after", then],
    ],
    rule: scene.about && `${scene.name}: ${scene.about}`,
  };
}

function tellElements({ title, what, lines, rule }) {
  const rows = lines.filter(([, text]) => text).map(([name, text]) => element("tr", {}, element("th", {}, name), element("td", {}, text)));
  const parts = [element("b", {}, title), what ? element("div", {}, what) : "", element("table", {}, ...rows)];
  return rule ? [...parts, element("div", { className: "rule" }, rule)] : parts;
}
