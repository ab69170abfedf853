// Prices: a bound on every plan, and the place where good ones lie. As in src/allotment/solver/dual.py.

import { REACHES } from "./curves.js";
import { rise } from "./model.js";

export const dot = (a, b) => a.reduce((total, each, i) => total + each * b[i], 0);

/** All of the model: the least and the most of each variable. */
export const whole = (model) => ({
  low: model.variables.map(({ arms }) => arms[0].low),
  high: model.variables.map(({ arms }) => arms.at(-1).high),
});

/** The best count of an arm at a slope: the last lot that is worth more than it costs. */
export function answerArm(variable, arm, low, high, slope) {
  const { lot } = arm;
  const most = (high - low) / lot;
  const pays = (lots) => rise(variable, low + (lots - 1) * lot, lot) > slope * lot;
  // lots pay up to some number and not beyond; it is looked for around what a formula says, or around
  // the last answer
  const [term] = variable.terms;
  let near = arm.hint;
  if (variable.terms.length === 1 && slope > 0 && REACHES[term.curve]) {
    near = REACHES[term.curve](term, slope / term.scale) / term.scale - variable.base;
  }
  let good = Math.min(Math.max(Math.round((near - low) / lot) || 0, 0), most);
  let bad = good;
  let step = 1;
  if (good === 0 || pays(good)) {
    do {
      bad = good + step;
      if (bad > most || !pays(bad)) break;
      good = bad;
      step *= 4;
    } while (true);
    bad = Math.min(bad, most + 1);
  } else {
    do {
      bad = good;
      good = Math.max(good - step, 0);
      step *= 4;
    } while (good > 0 && !pays(good));
  }
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (pays(middle)) good = middle;
    else bad = middle;
  }
  arm.hint = low + good * lot;
  return arm.hint;
}

/** Every variable's best answer to the prices; ties go to fewer labels. */
export function respond(model, part, prices) {
  const slack = model.limits.slice();
  const best = [];
  let bound = dot(prices, model.limits);
  model.variables.forEach((variable, v) => {
    let top = null;
    for (const arm of variable.arms) {
      const low = Math.max(arm.low, part.low[v]);
      const high = Math.min(arm.high, part.high[v]);
      if (low > high) continue;
      const slope = dot(prices, arm.use);
      const count = low === high ? low : answerArm(variable, arm, low, high, slope);
      const profit = rise(variable, 0, count) - slope * count - prices[0] * arm.fixed;
      if (top === null || profit > top.profit) top = { arm, count, profit, slope };
    }
    best.push(top);
    bound += top.profit;
    for (let row = 0; row < slack.length; row++) slack[row] -= top.arm.use[row] * top.count;
    slack[0] -= top.arm.fixed;
  });
  return { prices, best, bound, slack };
}

export const choiceOf = (model, answer) => answer.best.slice(0, model.tasks).map(({ count }) => count);

/** A price of each limit above which no variable wants any more of it. */
export function highestPrices(model, part) {
  const prices = new Array(model.limits.length).fill(0);
  const first = model.variables.map((variable, v) => {
    let top = 0;
    if (part.low[v] >= part.high[v]) return 0;
    for (const arm of variable.arms) {
      const low = Math.max(arm.low, part.low[v]);
      if (low <= Math.min(arm.high, part.high[v])) {
        top = Math.max(top, rise(variable, low, arm.lot) / arm.lot);
      }
    }
    return top;
  });
  // a link's price is at most its curve's first slope; that is worth something to the tasks
  for (let link = 0; link < model.links; link++) {
    prices[model.plain + link] = first[model.tasks + link];
  }
  for (let i = 0; i < model.tasks; i++) {
    for (const { use } of model.variables[i].arms) {
      let slope = first[i];
      for (let row = model.plain; row < prices.length; row++) slope -= prices[row] * use[row];
      for (let row = 0; row < model.plain; row++) {
        if (use[row] > 0) prices[row] = Math.max(prices[row], slope / use[row]);
      }
    }
  }
  return prices;
}

/** Prices that make the bound small: [that answer, one just on the feasible side if money is the only limit]. */
export const findPrices = (model, part, start, close = 1e-13) =>
  model.limits.length === 1 ? priceMoney(model, part) : priceAll(model, part, start, close);

/** Money only: the price of money at which spending crosses the budget. */
function priceMoney(model, part) {
  let top = highestPrices(model, part)[0];
  const free = respond(model, part, [0]);
  if (top <= 0) return [free, free];
  // at this price the whole budget is worth less than rounding: what is not bought adds nothing
  let least = (Math.max(free.bound, 0) * 1e-13) / Math.max(1, model.limits[0]);
  least = Math.min(Math.max(least, top * 1e-60), top);
  let cheap = respond(model, part, [least]);
  if (cheap.slack[0] >= 0) return [cheap, cheap];
  top *= 1 + 1e-9;
  let dear = respond(model, part, [top]);
  let [low, high] = [Math.log(least), Math.log(top)];
  let turn = 0;
  while (high - low > 4e-16 * Math.max(1, Math.abs(high)) && cheap.slack[0] < 0) {
    if (lotApart(cheap, dear)) break;
    // false position, and every third step a plain half: few steps where spending is smooth, never many
    const [below, above] = [cheap.slack[0], dear.slack[0]];
    let share = 0.5;
    if (turn !== 2 && above > below) {
      share = Math.min(Math.max(below / (below - above), 1e-3), 1 - 1e-3);
    }
    turn = (turn + 1) % 3;
    const middle = low + share * (high - low);
    if (!(low < middle && middle < high)) break;
    const answer = respond(model, part, [Math.exp(middle)]);
    if (answer.slack[0] < 0) {
      [low, cheap] = [middle, answer];
    } else {
      [high, dear] = [middle, answer];
      if (answer.slack[0] === 0) cheap = answer;
    }
  }
  const apart = lotApart(cheap, dear);
  if (apart) {
    // the price at which that lot pays is the best one
    const { variable, lots, arm, from } = apart;
    const gain = rise(model.variables[variable], from, lots);
    const exact = respond(model, part, [gain / (lots * arm.use[0])]);
    if (exact.bound <= Math.min(cheap.bound, dear.bound)) return [exact, dear];
  }
  return [cheap.bound <= dear.bound ? cheap : dear, dear];
}

/** The one lot of one task, bought at one price, by which two answers differ; null if by more. */
function lotApart(cheap, dear) {
  let found = null;
  for (let v = 0; v < cheap.best.length; v++) {
    const [more, less] = [cheap.best[v], dear.best[v]];
    if (more.count === less.count) continue;
    const lots = more.count - less.count;
    if (found || more.arm !== less.arm || lots !== more.arm.lot) return null;
    found = { variable: v, lots, arm: more.arm, from: less.count };
  }
  return found;
}

/** Several limits: the ellipsoid method, which tells how far from the best prices it can still be. */
function priceAll(model, part, start, close) {
  const tops = highestPrices(model, part);
  const free = tops.flatMap((top, row) => (top > 0 ? [row] : []));
  const size = free.length;
  let best = respond(model, part, tops.map(() => 0));
  if (!size) return [best, best];
  let centre = free.map((row) => (start ? Math.min(Math.max(start[row] / tops[row], 0), 1) : 0.5));
  // a ball around all prices up to the highest
  let shape = free.map((_, i) => free.map((_, j) => (i === j ? (start ? size / 100 : size) : 0)));
  for (let turn = 0; turn < 2000; turn++) {
    const outside = centre.findIndex((each) => each < 0);
    let slope;
    let depth;
    if (outside >= 0) {
      slope = free.map((_, i) => (i === outside ? -1 : 0));
      depth = -centre[outside];
    } else {
      const prices = tops.map(() => 0);
      free.forEach((row, i) => (prices[row] = centre[i] * tops[row]));
      const answer = respond(model, part, prices);
      if (answer.bound < best.bound) best = answer;
      slope = free.map((row) => answer.slack[row] * tops[row]);
      depth = answer.bound - best.bound;
    }
    const step = shape.map((row) => dot(row, slope));
    const length = Math.sqrt(Math.max(dot(slope, step), 0));
    if (length <= close * Math.max(Math.abs(best.bound), 1e-300)) break;
    [centre, shape] = cutEllipsoid(centre, shape, step.map((each) => each / length), depth / length);
  }
  return [best, best];
}

/** The smallest ellipsoid around the part of this one that lies below the cut. */
function cutEllipsoid(centre, shape, step, deep) {
  const size = centre.length;
  const depth = Math.min(deep, 0.999);
  if (size === 1) {
    const half = Math.sqrt(shape[0][0]);
    const shrunk = shape[0][0] * ((1 - depth) / 2) ** 2;
    return [[centre[0] - (Math.sign(step[0]) * half * (1 + depth)) / 2], [[shrunk]]];
  }
  const move = (1 + size * depth) / (size + 1);
  const shrink = (2 * (1 + size * depth)) / ((size + 1) * (1 + depth));
  const grow = (size ** 2 * (1 - depth ** 2)) / (size ** 2 - 1);
  return [
    centre.map((each, i) => each - move * step[i]),
    // the mean of both halves, lest rounding make it lopsided
    shape.map((row, i) =>
      row.map((each, j) => grow * ((each + shape[j][i]) / 2 - shrink * step[i] * step[j])),
    ),
  ];
}
