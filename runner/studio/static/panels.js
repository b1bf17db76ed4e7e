// the timeline: asks for other rows when those that it has come to an end
window.sgRows = (id, height) => {
  const box = document.getElementById(id);
  if (!box) return setTimeout(() => window.sgRows(id, height), 20);
  let asked = null, due = false;
  const look = () => {
    due = false;
    const has = box.querySelector(".sg-window");
    if (!has) return;
    const total = +has.dataset.total, from = +has.dataset.from, to = from + has.children.length;
    const first = Math.floor(box.scrollTop / height), last = Math.ceil((box.scrollTop + box.clientHeight) / height);
    const near = (first < from + 15 && from > 0) || (last > to - 15 && to < total);
    if (!near) { asked = null; return; }
    if (asked !== null && Math.abs(asked - first) < 15) return;
    asked = first;
    emitEvent("studio_rows", first);
  };
  box.sgLook = () => { asked = null; look(); };
  box.addEventListener("scroll", () => { if (!due) { due = true; requestAnimationFrame(look); } }, {passive: true});
  box.addEventListener("click", (event) => {
    const line = event.target.closest(".sg-line");
    if (line) emitEvent("studio_row", +line.dataset.place);
  });
  box.addEventListener("keydown", (event) => {
    const by = {ArrowUp: 1, ArrowDown: -1, PageUp: 20, PageDown: -20}[event.key];
    if (!by) return;
    event.preventDefault();
    emitEvent("studio_row_by", by);
  });
};
window.sgRowsAt = (id, version, height, grown, show) => {
  const box = document.getElementById(id);
  const has = box && box.querySelector(".sg-window");
  if (!has || +has.dataset.version < version) return setTimeout(() => window.sgRowsAt(id, version, height, grown, show), 20);
  if (grown && box.scrollTop > height) box.scrollTop += grown * height;
  if (show !== null) {
    const top = show * height;
    if (top < box.scrollTop || top + height > box.scrollTop + box.clientHeight)
      box.scrollTop = Math.max(0, top - box.clientHeight / 2);
  }
  box.sgLook?.();
};

// tells whether an element is to be seen, so that what is costly is asked for only then; tabs make and unmake elements
window.sgSeen = (id) => {
  let seen = false;
  setInterval(() => {
    const now = !!document.getElementById(id)?.getClientRects().length;
    if (now !== seen && window.socket?.connected) emitEvent("studio_seen", [id, seen = now]);
  }, 200);
};
