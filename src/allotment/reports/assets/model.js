// A problem as the planner solves it: variables on arms, and limits. As in src/allotment/solver/model.py.

import { merge, prepare, riseOf } from "./curves.js";

export const floorOf = (task) => task.frozen ?? Math.ceil(task.least / task.lot) * task.lot;

export function ceilingOf(task) {
  if (task.frozen !== null) return task.frozen;
  const most = Math.min(task.pool ?? Infinity, task.most ?? Infinity);
  return most === Infinity ? Infinity : Math.floor(most / task.lot) * task.lot;
}

/** What so many new labels cost, in units of money, fee and tiers included. */
export function priceOf(task, count) {
  if (count <= 0) return 0;
  return task.prices.reduce((total, [after, price], i) => {
    const end = task.prices[i + 1]?.[0] ?? Infinity;
    return total + Math.max(0, Math.min(count, end) - after) * price;
  }, task.fee);
}

/** What the counts cost together, in units of money. */
export const spendOf = (problem, counts) =>
  problem.tasks.reduce((total, task, i) => total + priceOf(task, counts[i]), 0);

const usedOf = (problem, cap, counts) =>
  problem.tasks.reduce((total, task, i) => total + (cap.use[task.name] ?? 0) * counts[i], 0);

/** Every pair of limits that no plan can meet together, in words. */
export function findClashes(problem) {
  const { tasks, caps } = problem;
  const floors = tasks.map(floorOf);
  const found = [];
  for (const task of tasks) {
    const ceiling = Math.min(task.pool ?? Infinity, task.most ?? Infinity);
    const whole = Math.floor(ceiling / task.lot) * task.lot;
    const least = floorOf(task);
    if (least > whole || (task.frozen ?? least) < task.least || least % task.lot) {
      found.push(`the limits of ${task.name} leave no count that can be bought`);
    }
  }
  if (found.length) return found;
  if (spendOf(problem, floors) > problem.budget) {
    found.push("what must be bought costs more than the budget");
  }
  for (const cap of caps) {
    if (usedOf(problem, cap, floors) > cap.limit) {
      found.push(`what must be bought takes more of ${cap.name} than there is`);
    }
  }
  return found;
}

/** Weighted curves of single tasks, and the curves that several tasks feed. */
function splitGains(problem) {
  const { tasks } = problem;
  const index = new Map(tasks.map((task, i) => [task.name, i]));
  const own = tasks.map(() => []);
  const links = new Map();
  const link = (key, shares, step, most) => {
    if (!links.has(key)) links.set(key, { shares, step, most, terms: [] });
    return links.get(key).terms;
  };
  for (const [i, task] of tasks.entries()) {
    if (!task.weight) continue;
    const givers = problem.count_implied
      ? tasks.flatMap((other, j) => (other.implies.includes(task.name) ? [j] : []))
      : [];
    for (const term of problem.gains[task.name]) {
      const shares = term.of || givers.length ? new Array(tasks.length).fill(0) : null;
      if (term.of) {
        const fed = Object.entries(term.of.shares);
        for (const [name, share] of fed) shares[index.get(name)] = share;
        if (fed.length === 1) {
          // labels of one other task alone: a curve of that task's own count
          const [[name, share]] = fed;
          own[index.get(name)].push(prepare(term, task.weight, share * term.of.step));
        } else {
          const key = JSON.stringify([shares, term.of.step]);
          link(key, shares, term.of.step, null).push(prepare(term, task.weight, term.of.step));
        }
      } else if (givers.length) {
        for (const j of [i, ...givers]) shares[j] = 1;
        link(`implied ${i}`, shares, 1, task.pool).push(prepare(term, task.weight));
      } else {
        own[i].push(prepare(term, task.weight));
      }
    }
  }
  return [own.map(merge), [...links.values()].map((each) => ({ ...each, terms: merge(each.terms) }))];
}

/** The ranges of a task's counts on which its money is a straight line, counted from its floor. */
function listArms(task, spare, most, harmful) {
  const low = floorOf(task);
  const ceiling = ceilingOf(task);
  const paid = priceOf(task, low);
  const arm = (from, to, price, money) => ({
    low: from - low, high: to - low, lot: task.lot, price, fixed: money + price * low - paid,
  });
  if (harmful || ceiling === low) return [arm(low, low, 0, paid)];
  const arms = low === 0 && task.fee ? [arm(0, 0, 0, 0)] : [];
  let fixed = task.fee;
  for (const [i, [after, price]] of task.prices.entries()) {
    const end = task.prices[i + 1]?.[0] ?? Infinity;
    const money = fixed - price * after;
    const first = after || task.fee ? (Math.floor(after / task.lot) + 1) * task.lot : 0;
    const start = Math.max(low, first);
    let stop = Math.min(Math.floor((spare - money) / price), most);
    // One lot more than can be had, so that the limit itself sets the price of money; but not where
    // even the first one is out of reach: it would hide what all others are worth.
    if (stop >= (start > low ? start : start + task.lot)) stop += task.lot;
    stop = Math.floor(Math.min(stop, end, ceiling) / task.lot) * task.lot;
    if (start <= stop) arms.push(arm(start, stop, price, money));
    fixed += price * (end - after);
  }
  return arms.length ? arms : [arm(low, low, 0, paid)];
}

export function build(problem) {
  const { tasks, caps, budget } = problem;
  const floors = tasks.map(floorOf);
  const [own, links] = splitGains(problem);
  const spent = spendOf(problem, floors);
  const taken = caps.map((cap) => usedOf(problem, cap, floors));
  const plain = 1 + caps.length;
  const variables = tasks.map((task, i) => {
    const most = caps.map((cap, c) =>
      cap.use[task.name]
        ? Math.floor((cap.limit - taken[c]) / cap.use[task.name]) + floors[i]
        : Infinity,
    );
    // a falling curve need not be concave, but then its least is best
    const harmful = own[i].some((term) => term.curve !== "table" && term.size < 0);
    const arms = listArms(task, budget - spent + priceOf(task, floors[i]), Math.min(...most), harmful);
    for (const arm of arms) {
      const uses = caps.map((cap) => cap.use[task.name] ?? 0);
      arm.use = [arm.price, ...uses, ...links.map(({ shares }) => -shares[i])];
    }
    return { terms: own[i], base: floors[i], arms };
  });
  const limits = [budget - spent, ...caps.map((cap, c) => cap.limit - taken[c])];
  for (const [at, { shares, most, terms }] of links.entries()) {
    const sum = (counts) => shares.reduce((total, share, i) => total + share * counts[i], 0);
    const given = sum(floors);
    const room = most ?? Infinity;
    const start = Math.min(given, room);
    const tops = tasks.map((_, i) => floors[i] + variables[i].arms.at(-1).high);
    const use = new Array(plain + links.length).fill(0);
    use[plain + at] = 1;
    limits.push(given - start);
    const high = Math.min(sum(tops), room) - start;
    variables.push({ terms, base: start, arms: [{ low: 0, high, lot: 1, fixed: 0, use }] });
  }
  for (const variable of variables) {
    for (const arm of variable.arms) Object.assign(arm, { terms: variable.terms, hint: 0 });
  }
  return { tasks: tasks.length, links: links.length, plain, variables, limits };
}

/** What `more` steps add to a variable's curve after `count`; fewer where `more` is below 0. */
export function rise({ terms, base }, count, more) {
  if (more < 0) return -riseOf(terms, base + count + more, -more);
  return more ? riseOf(terms, base + count, more) : 0;
}

/** Task counts followed by the arguments of shared curves, which get all that their tasks put in. */
export function complete(model, counts) {
  const all = counts.slice(0, model.tasks);
  for (let link = 0; link < model.links; link++) {
    const row = model.plain + link;
    let given = model.limits[row];
    for (let i = 0; i < model.tasks; i++) given -= model.variables[i].arms[0].use[row] * counts[i];
    all.push(Math.min(given, model.variables[model.tasks + link].arms[0].high));
  }
  return all;
}

/** What a plan adds to the floors' worth. */
export function worthOf(model, counts) {
  const all = complete(model, counts);
  return all.reduce((total, count, v) => total + rise(model.variables[v], 0, count), 0);
}

function armAt({ arms }, count) {
  let at = 0;
  while (at + 1 < arms.length && arms[at + 1].low <= count) at++;
  return arms[at];
}

/** What a count of a variable takes of every limit. */
export function takes(variable, count) {
  const arm = armAt(variable, count);
  const use = arm.use.map((each) => each * count);
  use[0] += arm.fixed;
  return use;
}

/** What the counts take of money and caps. */
export function usedBy(model, counts) {
  const used = new Array(model.plain).fill(0);
  for (let i = 0; i < model.tasks; i++) {
    const use = takes(model.variables[i], counts[i]);
    for (let row = 0; row < model.plain; row++) used[row] += use[row];
  }
  return used;
}

export const fits = (model, counts) => usedBy(model, counts).every((used, row) => used <= model.limits[row]);
