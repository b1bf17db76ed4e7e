"""The program for a page with a picture in it: clicks, keys and changes, without drawing the picture anew."""

APPLY_JS = """\
function graphagentPicture(root, onNode = () => {}) {
  root.graphagentEnd?.abort();
  root.graphagentEnd = new AbortController();
  const listen = (kind, act) => root.addEventListener(kind, act, {signal: root.graphagentEnd.signal});
  const nodes = new Map([...root.querySelectorAll(".node")].map((node) => [node.dataset.node, node]));
  const edges = [...root.querySelectorAll(".edge")];
  const near = (event) => event.target.closest(".node[role=button]");
  const middle = (node) => {
    const box = node.querySelector(".box").getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const neighbour = (node, [dx, dy]) => {
    const [x, y] = middle(node);
    const far = (other) => {
      const [ox, oy] = middle(other);
      const along = (ox - x) * dx + (oy - y) * dy;
      return along > 1 ? along + 2 * Math.abs((ox - x) * dy + (oy - y) * dx) : Infinity;
    };
    const ways = [...nodes.values()].filter((n) => n.tabIndex === 0 && n !== node).map((n) => [far(n), n]);
    return ways.reduce((best, way) => (way[0] < best[0] ? way : best), [Infinity, null])[1];
  };
  const arrows = {ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0]};
  listen("click", (event) => near(event) && onNode(near(event).dataset.node));
  listen("keydown", (event) => {
    const node = near(event);
    const plain = !event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey;
    if (!node || !plain || !(event.key === "Enter" || event.key === " " || event.key in arrows)) return;
    event.preventDefault();
    if (event.key in arrows) neighbour(node, arrows[event.key])?.focus();
    else onNode(node.dataset.node);
  });
  const words = (element, text) => {
    element.querySelector("title").textContent = text;
    if (element.hasAttribute("aria-label")) element.setAttribute("aria-label", text);
  };
  const mark = (change) => {
    const node = nodes.get(change.node);
    if (!node) return;
    node.dataset.state = change.state;
    node.querySelector(".badge").innerHTML = change.badge;
    words(node, [node.dataset.about, change.words].filter(Boolean).join(", "));
  };
  const take = (change) => {
    for (const edge of edges) {
      if (edge.dataset.source !== change.source || edge.dataset.target !== change.target) continue;
      if (change.taken) edge.dataset.taken = change.taken;
      else delete edge.dataset.taken;
      edge.style.strokeWidth = change.width || "";
      words(edge, edge.querySelector("title").textContent.replace(/, taken \\d+ times?$/, "") + change.words);
    }
  };
  return {
    show: (name) => nodes.get(name)?.scrollIntoView({block: "nearest", inline: "nearest"}),
    apply: (changes) => changes.forEach((change) => ("node" in change ? mark : take)(change)),
    select: (name) => nodes.forEach((node, id) => {
      node.classList.toggle("selected", id === name);
      if (id === name) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    }),
    breakpoints: (names) => nodes.forEach((node, id) => {
      node.classList.toggle("breakpoint", names.includes(id));
      if (names.includes(id)) node.setAttribute("aria-description", "breakpoint");
      else node.removeAttribute("aria-description");
    }),
  };
}
"""
"""Declares `graphagentPicture(root, onNode)`, where `root` is the picture or an element around it.

`onNode(id)` is called on a click on a node, and on Enter or Space while it has the focus; arrow keys move the focus.
What is returned has `apply(changes)` for what `mark_patch` and `edge_patch` return, `select(id)` (null: none),
`breakpoints(ids)` and `show(id)`, which scrolls. Called again on the same root, it takes the place of the earlier call.
"""
