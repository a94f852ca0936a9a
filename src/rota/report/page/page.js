// The page as a whole: what there is at a glance, then section by section.

const BLOCKS = { table: tableBlock, chart: chartBlock, shares: sharesBlock, heat: heatBlock, timeline: timelineBlock };

function blockOf(block) {
  const parts = [element("h3", {}, block.title)];
  if (block.note) parts.push(element("p", { className: "note" }, block.note));
  return element("div", { className: `block ${block.type}-block${block.heads?.length <= 4 ? " half" : ""}` }, ...parts, BLOCKS[block.type](block));
}

function sectionOf(section) {
  const made = element("section", { id: section.id, "aria-label": section.title },
    element("h2", {}, section.title), element("p", { className: "about" }, section.about),
    element("div", { className: "blocks" }, ...section.blocks.map(blockOf)));
  if (section.commands.length) {
    const commands = section.commands.map((each) => element("code", {}, each));
    made.append(element("details", {}, element("summary", {}, "Made by"), ...commands));
  }
  return made;
}

// What was best, by how much: a card per section.
function cardOf({ id, title, glance }) {
  const most = Math.max(...glance.bars.map(([, , value]) => value), 0);
  const bars = glance.bars.map(([name, colour, value, text]) => {
    const bar = element("span", { className: "bar" });
    bar.style.width = `${100 * value / (most || 1)}%`;
    bar.style.background = themed(colour);
    return element("li", {}, element("span", { className: "name" }, name), element("span", { className: "track" }, bar), element("span", {}, text));
  });
  const winner = element("strong", {}, chip(glance.colour), glance.winner);
  return element("article", { className: "card" },
    element("h3", {}, element("a", { href: `#${id}` }, title)),
    element("p", {}, winner, ` ${glance.says}.`), element("p", { className: "others" }, glance.others && `${glance.others}.`),
    element("ul", {}, ...bars));
}

function contents(sections) {
  const options = [["glance", "At a glance"], ...sections.map(({ id, title }) => [id, title])]
    .map(([value, text]) => element("option", { value }, text));
  const select = element("select", { "aria-label": "Go to" }, ...options);
  select.addEventListener("change", () => document.getElementById(select.value).scrollIntoView());
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) select.value = target.id;
  }, { rootMargin: "-15% 0px -80% 0px" });
  for (const section of document.querySelectorAll("main > section")) observer.observe(section);
  return select;
}

function themeSwitch() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const tell = () => {
    button.textContent = isDark() ? "☀ Light" : "☾ Dark";
    document.dispatchEvent(new Event("themechange"));
  };
  try {
    root.dataset.theme = localStorage.getItem("rota-theme") ?? "";
  } catch { /* a browser that keeps nothing for files */ }
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("rota-theme", root.dataset.theme);
    } catch { /* then the next visit begins anew */ }
    tell();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
  for (const name of ["beforeprint", "afterprint"]) {
    addEventListener(name, () => {
      printing = name === "beforeprint";
      document.dispatchEvent(new Event("paperchange"));
    });
  }
  tell();
}

function build() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const content = document.getElementById("content");
  const cards = element("div", { className: "cards" }, ...data.sections.map(cardOf));
  content.append(element("section", { id: "glance", "aria-label": "At a glance" }, element("h2", {}, "At a glance"),
    element("p", { className: "lede", hidden: !data.lede }, data.lede), cards));
  content.append(...data.sections.map(sectionOf));
  if (data.sections.length > 1) document.getElementById("theme").before(contents(data.sections));
  document.getElementById("foot").append(`Made by rota ${data.version}: `, element("code", {}, data.command));
  addEventListener("scroll", hideTip, { passive: true });
  addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
}

themeSwitch();
build();
document.documentElement.dataset.ready = String(Math.round(performance.now()));
