// What the page draws with: esbuild makes src/allotment/reports/assets/plot.js of it (docs/page.md).
export {areaY, barX, dot, lineY, link, plot, pointerX, ruleX, text, tickX, tip} from "@observablehq/plot";
