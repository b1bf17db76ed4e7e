// light and dark
(() => {
  const known = localStorage.getItem("graphagent-theme");
  if (known) document.documentElement.dataset.theme = known;
  const dark = () => known ? known === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  window.graphagentTheme = (choice) => {
    const now = document.documentElement.dataset.theme
      || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    const next = choice || (now === "dark" ? "light" : "dark");
    document.documentElement.dataset.theme = next;
    localStorage.setItem("graphagent-theme", next);
    Quasar.Dark.set(next === "dark");
  };
  if (known) addEventListener("load", () => setTimeout(() => Quasar.Dark.set(dark()), 0));
})();

// the parts of a narrow page, as tabs
window.sgColumn = (name) => {
  document.querySelector(".sg-grid").dataset.column = name;
  document.querySelectorAll(".sg-columns button").forEach((one) => {
    one.setAttribute("aria-selected", one.dataset.column === name);
    one.tabIndex = one.dataset.column === name ? 0 : -1;
  });
};
addEventListener("keydown", (event) => {
  const tab = event.target.closest?.(".sg-columns button");
  if (!tab || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
  event.preventDefault();
  const all = [...tab.parentElement.children];
  const next = all[(all.indexOf(tab) + (event.key === "ArrowRight" ? 1 : all.length - 1)) % all.length];
  window.sgColumn(next.dataset.column);
  next.focus();
}, true);

// keys
addEventListener("keydown", (event) => {
  const bar = document.querySelector(".sg-controls[data-keys]");
  if (!bar || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  const target = event.target;
  if (target.closest("input, textarea, select, [contenteditable=true], .q-dialog, .q-menu, .cm-editor")) return;
  if (event.key.startsWith("Arrow") && target.closest("[role=tab], [role=tree], [role=listbox], [role=grid], .sg-own-keys")) return;
  if (!bar.dataset.keys.split(" ").includes(event.key)) return;
  event.preventDefault();
  emitEvent("studio_key", event.key);
});

// the picture
window.sgPicture = (id, first) => {
  const root = document.getElementById(id);
  const svg = root && root.querySelector("svg");
  if (!svg) return setTimeout(() => window.sgPicture(id, first), 20);
  if (root.sgDrawn === svg) return;
  root.sgDrawn = svg;
  root.sgEnd?.abort();
  root.sgEnd = new AbortController();
  root.addEventListener("click", (event) => {
    const stop = event.target.closest(".stop");
    if (!stop) return;
    event.stopPropagation();
    emitEvent("studio_stop", stop.closest(".node").dataset.node);
  }, {capture: true, signal: root.sgEnd.signal});
  root.sgHandle = graphagentPicture(root, (node) => emitEvent("studio_node", node));
  const box = root.parentElement;
  const [width, height] = svg.getAttribute("viewBox").split(" ").slice(2).map(Number);
  root.sgZoom = (zoom) => {
    root.sgScale = Math.min(Math.max(zoom, 0.1), 3);
    svg.setAttribute("width", width * root.sgScale);
    svg.setAttribute("height", height * root.sgScale);
  };
  root.sgFit = (least) => root.sgZoom(Math.min(1, Math.max(least,
    Math.min((box.clientWidth - 12) / width, (box.clientHeight - 12) / height))));
  root.sgFit(0.75);
  if (first) window.sgShow(id, first);
};
window.sgShow = (id, names) => {
  const root = document.getElementById(id);
  const nodes = names.map((name) => root.querySelector(`.node[data-node="${CSS.escape(name)}"]`)).filter(Boolean);
  if (!nodes.length) return;
  const box = root.parentElement.getBoundingClientRect();
  const seen = nodes.some((node) => {
    const at = node.getBoundingClientRect();
    return at.top >= box.top && at.bottom <= box.bottom && at.left >= box.left && at.right <= box.right;
  });
  if (!seen) nodes[0].scrollIntoView({block: "center", inline: "center"});
};
window.sgApply = (id, change) => {
  const root = document.getElementById(id);
  if (!root || !root.sgHandle) return setTimeout(() => window.sgApply(id, change), 20);
  if (change.marks) root.sgHandle.apply(change.marks);
  if ("selected" in change) root.sgHandle.select(change.selected);
  if (change.breakpoints) root.sgHandle.breakpoints(change.breakpoints);
  if (change.show) window.sgShow(id, change.show);
};
