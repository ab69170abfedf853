// The charts of the page, drawn with Plot. Each takes plain values and gives a picture that follows
// the colours of the page; what it shows stands in a table beside it as well.
"use strict";

const Charts = (() => {
  const FROM_LOG = 30; // the ratio of label numbers from which on they are drawn by their logarithm
  const HEIGHT = 240;

  /** A picture without the style element that Plot puts into it, which the page's policy refuses:
   * its rules stand in the page's own sheet. */
  function draw(options, label) {
    const picture = Plot.plot({ariaLabel: label, className: "plot", ...options});
    for (const each of picture.querySelectorAll("style")) each.remove();
    picture.setAttribute("role", "img");
    return picture;
  }

  const say = new Intl.NumberFormat("en", {maximumSignificantDigits: 4}).format;
  const sayCount = new Intl.NumberFormat("en", {maximumFractionDigits: 0}).format;

  /** A task's score, or gain, by its number of labels. */
  function curve(given, width) {
    const points = (given.points ?? []).map(([at, mean, low, high]) => ({at, mean, low, high}));
    const seen = (given.seen ?? []).map(([at, score]) => ({at, score}));
    const marks = given.marks ?? [];
    const all = [...points, ...seen, ...marks].map((each) => each.at).filter((at) => at > 0);
    const log = all.length > 1 && Math.max(...all) / Math.min(...all) >= FROM_LOG;
    const banded = points.filter((each) => each.low !== null && each.high !== null);
    return draw({
      width, height: HEIGHT, marginLeft: 52, marginTop: 46, marginBottom: 36, marginRight: 16,
      x: {label: given.axis, type: log ? "log" : "linear", ticks: 4, nice: !log, tickFormat: shorten},
      y: {label: given.unit ?? null, nice: true, ticks: 5, grid: true},
      marks: [
        Plot.areaY(banded, {x: "at", y1: "low", y2: "high", fill: "var(--accent)", fillOpacity: 0.18}),
        Plot.dot(seen, {x: "at", y: "score", r: 2, fill: "var(--muted)", fillOpacity: 0.8}),
        ...drawMarks(marks, all, log),
        Plot.lineY(points, {x: "at", y: "mean", stroke: "var(--accent)", strokeWidth: 2}),
        Plot.tip(points, Plot.pointerX({x: "at", y: "mean", format: {x: false, y: false},
          title: (each) => tellPoint(each, given.unit)})),
      ],
    }, `${given.name}: ${given.unit ?? ""}`);
  }

  /** Upright lines with their texts above the frame, one row each so that none lies on another; in
   * the right half a text ends at its line. */
  function drawMarks(marks, all, log) {
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const isRight = (at) => (log ? Math.log(at / low) / Math.log(high / low) : (at - low) / (high - low || 1)) > 0.5;
    return marks.flatMap((mark, row) => {
      const colour = `var(--${mark.colour})`;
      return [
        Plot.ruleX([mark], {x: "at", stroke: colour, strokeWidth: 1.5,
          strokeDasharray: mark.colour === "muted" ? "4 3" : null}),
        Plot.text([mark], {x: "at", text: "text", frameAnchor: "top", lineAnchor: "bottom", dy: -3 - 13 * row,
          textAnchor: isRight(mark.at) ? "end" : "start", fill: "var(--text)"}),
      ];
    });
  }

  function tellPoint(each, unit) {
    const span = each.low === null ? "" : ` (${say(each.low)} to ${say(each.high)})`;
    return `${sayCount(each.at)} labels\n${say(each.mean)}${span}${unit ? ` ${unit}` : ""}`;
  }

  function shorten(value) {
    for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (Math.abs(value) >= 10 * size) return `${say(value / size)}${letter}`;
    }
    return say(value);
  }

  /** What money brings: the best plan of every budget, with what is not known about it. */
  function frontier(given, width) {
    const points = given.points.map(([money, mean, low, high]) => ({money, mean, low, high}));
    const banded = points.filter((each) => each.low !== null && each.low !== undefined);
    return draw({
      width, height: 280, marginLeft: 52, marginTop: 46, marginBottom: 36, marginRight: 16,
      x: {label: given.money, ticks: 5, nice: true, tickFormat: shorten},
      y: {label: given.unit, grid: true, nice: true, ticks: 5},
      marks: [
        Plot.areaY(banded, {x: "money", y1: "low", y2: "high", fill: "var(--accent)", fillOpacity: 0.18}),
        ...drawMarks(given.marks, points.map((each) => each.money), false),
        Plot.lineY(points, {x: "money", y: "mean", stroke: "var(--accent)", strokeWidth: 2}),
        Plot.tip(points, Plot.pointerX({x: "money", y: "mean", format: {x: false, y: false},
          title: (each) => `${given.sayMoney(each.money)}\n${say(each.mean)} ${given.unit}` +
            (each.low === null || each.low === undefined ? "" : ` (${say(each.low)} to ${say(each.high)})`)})),
      ],
    }, given.name);
  }

  /** A difference with its interval, beside 0. */
  function interval(given, width) {
    return draw({
      width, height: 72, marginLeft: 12, marginRight: 12, marginTop: 8, marginBottom: 38,
      x: {label: given.unit, nice: true, ticks: 5, zero: true}, y: {axis: null},
      marks: [
        Plot.ruleX([0], {stroke: "var(--muted)", strokeDasharray: "4 3"}),
        Plot.link([given], {x1: "low", x2: "high", y1: 0, y2: 0, stroke: "var(--accent)", strokeWidth: 8,
          strokeOpacity: 0.35}),
        Plot.dot([given], {x: "mean", y: 0, r: 6, fill: "var(--accent)"}),
      ],
    }, given.name);
  }

  /** What tasks gain by their own labels, and by those of others. */
  function worth(given, width) {
    const rows = given.rows.flatMap(({task, own, others}) => [
      {task, part: given.own, gain: own}, {task, part: given.others, gain: others}]);
    return draw({
      width, height: 54 + 30 * given.rows.length, marginLeft: Math.min(140, width / 3), marginBottom: 36,
      x: {label: given.unit, grid: true, nice: true, ticks: 4}, y: {label: null, padding: 0.3, domain: given.rows.map((each) => each.task)},
      color: {domain: [given.own, given.others], range: ["var(--accent)", "var(--mark)"]},
      marks: [
        Plot.barX(rows, {x: "gain", y: "task", fill: "part", title: (each) => `${each.part}: ${say(each.gain)}`}),
        Plot.ruleX([0], {stroke: "var(--muted)"}),
      ],
    }, given.name);
  }

  /** What was foretold of plans, and what they brought. */
  function outcome(given, width) {
    return draw({
      width, height: 40 + 34 * given.rows.length, marginLeft: Math.min(140, width / 3), marginBottom: 36,
      x: {label: given.unit, grid: true, nice: true, zero: true, ticks: 5}, y: {label: null, domain: given.rows.map((each) => each.name)},
      marks: [
        Plot.ruleX([0], {stroke: "var(--muted)"}),
        Plot.link(given.rows.filter((each) => each.low !== null), {x1: "low", x2: "high", y1: "name", y2: "name",
          stroke: "var(--accent)", strokeWidth: 8, strokeOpacity: 0.35}),
        Plot.dot(given.rows.filter((each) => each.mean !== null), {x: "mean", y: "name", r: 5, fill: "var(--accent)"}),
        Plot.tickX(given.rows.filter((each) => each.foretold !== null), {x: "foretold", y: "name",
          stroke: "var(--mark)", strokeWidth: 3}),
      ],
    }, given.name);
  }

  return {curve, frontier, interval, worth, outcome};
})();
