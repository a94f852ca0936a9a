// Bars that are cut into parts which add up to a whole.

function sharesBlock(block) {
  const legend = block.parts.map(([name, colour]) => element("span", {}, chip(colour), name));
  const rows = block.rows.map(([name, values]) => {
    const bar = element("div", { className: "whole" });
    values.forEach((value, number) => {
      const [what, colour] = block.parts[number];
      const part = element("span", { title: `${name}: ${what} ${percent(value, 1)}` });
      part.style.width = `${100 * value}%`;
      part.style.background = themed(colour);
      bar.append(part);
    });
    const said = `${block.parts.at(-1)[0]} ${percent(values.at(-1), 1)}`;
    return element("div", { className: "share" }, element("span", {}, name), bar, element("span", {}, said));
  });
  return element("div", {}, element("div", { className: "legend" }, ...legend), ...rows);
}
