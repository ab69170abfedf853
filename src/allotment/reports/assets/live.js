// The frame around the page that `allot serve` shows: how far the run is that is under way, and the
// page itself, which is loaded again when there is another. What a reader asked of it stays: that is
// in the link of the page, and in ours.
(() => {
  "use strict";

  const BUSY = 2000, IDLE = 5000, MIRROR = 300; // milliseconds
  const {idle, lost, name} = document.body.dataset;
  const said = document.getElementById("said");
  const bar = document.getElementById("bar");
  const frame = document.getElementById("report");
  let shown = document.body.dataset.page;

  frame.src = "/report" + location.hash;

  /** Whether somebody is typing into the page, which a new one would take from them. */
  const isTyping = () => /^(INPUT|SELECT|TEXTAREA)$/.test(frame.contentDocument?.activeElement?.tagName ?? "");

  function show(now) {
    said.textContent = now.said || idle;
    bar.hidden = !now.running;
    if (now.total > 0) {
      bar.max = now.total;
      bar.value = now.done;
    } else bar.removeAttribute("value");
    document.title = now.total > 0 ? `${Math.floor((100 * now.done) / now.total)} % – ${name}` : name;
    if (now.page !== shown && !isTyping()) {
      shown = now.page;
      frame.contentWindow.location.reload();
    }
  }

  async function ask() {
    let wait = IDLE;
    try {
      const answer = await fetch("/progress", {cache: "no-store"});
      const now = await answer.json();
      wait = now.running ? BUSY : IDLE;
      show(now);
    } catch {
      said.textContent = lost;
      bar.hidden = true;
    }
    setTimeout(ask, wait);
  }

  /** Our link is the page's, so that it can be loaded again or sent on. */
  function mirror() {
    const hash = frame.contentWindow?.location.hash ?? "";
    if (frame.contentWindow?.location.pathname === "/report" && hash !== location.hash) {
      history.replaceState(null, "", hash || "/");
    }
  }

  setInterval(mirror, MIRROR);
  ask();
})();
