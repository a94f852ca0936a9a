// How likely each action is at each decision: a small table per scenario.

function heatBlock(block) {
  return element("div", { className: "heats" }, ...block.maps.map((map) => heatMap(block, map)));
}

function heatMap(block, map) {
  const decisions = map.probabilities.map((_, number) => element("th", { scope: "col" }, String(number + 1)));
  const rows = block.actions.slice(0, map.probabilities[0]?.length ?? 0).map((action, number) => {
    const cells = map.probabilities.map((chances, decision) => heatCell(chances[number], map.chosen[decision] === number));
    return element("tr", {}, element("th", { scope: "row" }, action), ...cells);
  });
  const head = element("tr", {}, element("th", { scope: "col" }, "decision"), ...decisions);
  const caption = element("caption", {}, element("b", {}, map.label), ` rank ${map.rank} of ${map.of}`);
  return element("table", { className: "heat" }, caption, element("thead", {}, head), element("tbody", {}, ...rows));
}

function heatCell(chance, chosen) {
  const cell = element("td", { className: chosen ? "chosen" : "" }, String(Math.round(100 * chance)));
  cell.style.setProperty("--chance", `${Math.round(100 * chance)}%`);
  if (chance > 0.55) cell.classList.add("likely");
  return cell;
}
