"""How the page looks: on a screen, light and dark, on a phone and in print. Colours have names,
and nothing else."""

LIGHT = {
    "ground": "#ffffff",
    "panel": "#f4f6f8",
    "text": "#1b1f24",
    "muted": "#57606a",
    "rule": "#d0d7de",
    "shade": "#00000038",
    "accent": "#0b5cad",
    "mark": "#a04a00",
    "help-1": "#e3f0fb",
    "help-2": "#c3def6",
    "help-3": "#93c4ef",
    "harm-1": "#fdeadb",
    "harm-2": "#fbd3b3",
    "harm-3": "#f5b27d",
    "sound": "#14602d",
    "sound-back": "#e4f5e9",
    "weak": "#704600",
    "weak-back": "#fdf1d7",
    "unusable": "#9a1c1c",
    "unusable-back": "#fde8e8",
}
DARK = {
    "ground": "#14171a",
    "panel": "#1e2328",
    "text": "#e6e8eb",
    "muted": "#a3abb3",
    "rule": "#3a4149",
    "shade": "#000000d0",
    "accent": "#6cb2ff",
    "mark": "#f2a65a",
    "help-1": "#12304a",
    "help-2": "#17456d",
    "help-3": "#1b5688",
    "harm-1": "#402713",
    "harm-2": "#5c3516",
    "harm-3": "#753f10",
    "sound": "#8fdba6",
    "sound-back": "#16331f",
    "weak": "#f2cc80",
    "weak-back": "#3a2c0e",
    "unusable": "#ffaaa5",
    "unusable-back": "#431a1a",
}

CSS_RULES = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 75rem; padding: 1.5rem 1.25rem 4rem; background: var(--ground);
  color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.75rem 0 .75rem; padding-top: .75rem;
  border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 0; }
p { margin: .5rem 0; max-width: 46rem; }
a { color: var(--accent); }
code { font: .9em ui-monospace, Menlo, Consolas, monospace; }
.note, .legend, summary, dt { color: var(--muted); font-size: .875rem; }
.decision { background: var(--panel); border-left: .3rem solid var(--accent); border-radius: .25rem;
  padding: 1rem 1.25rem; }
.decision p { margin: 0 0 .5rem; }
.decision .sentence { font-size: 1.3rem; line-height: 1.4; }
.decision tbody th { background: none; overflow-wrap: break-word; }
.sign { display: none; }
@media (min-width: 62rem) {
  .beside { display: grid; grid-template-columns: minmax(0, 1fr) max-content; gap: 0 2.5rem; }
  .beside .note { max-width: 27rem; }
  .beside .sign { grid-column: 1 / -1; }
}
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; margin: 1rem 0 0;
  padding: 0;
  font-size: .875rem; }
/* a shade at the edge beyond which a table goes on; at its end a cover hides it */
.wide { overflow-x: auto; margin: .75rem 0;
  background:
    linear-gradient(to left, var(--ground) 1rem, transparent 2.5rem) right / 2.5rem no-repeat local,
    linear-gradient(to left, var(--shade), transparent) right / 1rem no-repeat scroll; }
.decision .wide { background: none; }
.wide:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: separate; border-spacing: 0; font-size: .9375rem;
  font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { padding: .35rem .65rem; border-bottom: 1px solid var(--rule); text-align: left;
  vertical-align: top; }
th { font-weight: 600; }
thead th { vertical-align: bottom; border-bottom: 2px solid var(--rule); max-width: 10rem;
  overflow-wrap: break-word; }
.number { text-align: right; white-space: nowrap; }
thead .number { white-space: normal; }
tbody th { font-weight: 400; background: var(--ground); position: sticky; left: 0; min-width: 8rem;
  max-width: 16rem;
  overflow-wrap: anywhere; }
tbody th, thead th:first-child, tfoot th { padding-left: 0; }
tfoot td, tfoot th, .strong th, .strong td { font-weight: 600; }
td.text { min-width: 10rem; max-width: 26rem; overflow-wrap: anywhere; }
.bar { display: block; height: .25rem; width: 100%; min-width: 3rem; margin-top: .2rem;
  background: var(--panel); }
.bar rect { fill: var(--accent); }
td small, tbody th small { display: block; color: inherit; font-size: .87em; }
tbody th small { color: var(--muted); }
.set { color: var(--muted); }
.help-1 { background: var(--help-1); } .help-2 { background: var(--help-2);
  } .help-3 { background: var(--help-3); }
.harm-1 { background: var(--harm-1); } .harm-2 { background: var(--harm-2);
  } .harm-3 { background: var(--harm-3); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  gap: 1.25rem; }
figure { margin: 0; min-width: 0; }
.chart { min-height: 4rem; }
.plot { display: block; max-width: 100%; height: auto; background: none; color: var(--text);
  font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  --plot-background: var(--ground); overflow: visible; }
.plot text, .plot tspan { white-space: pre; }
.spoken, .aside { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }
.key { display: inline-block; width: 1.75rem; height: 0; vertical-align: middle;
  margin-right: .35rem; border-top: 2px solid var(--accent); }
.key.band { height: .75rem; border: 0; background: var(--accent); opacity: .2; }
.key.dots { width: .4rem; height: .4rem; border: 0; border-radius: 50%; background: var(--muted); }
.key.own { height: .75rem; border: 0; background: var(--accent); }
.key.others { height: .75rem; border: 0; background: var(--mark); }
.key.hand { border-top: 2px dashed var(--muted); }
.key.buy { border-top-color: var(--mark); }
button { font: inherit; font-size: .875rem; color: var(--accent); background: var(--ground);
  border: 1px solid var(--rule); border-radius: .25rem; padding: .25rem .7rem; cursor: pointer; }
button:hover { border-color: var(--accent); }
button.csv { font-size: .75rem; padding: .05rem .45rem; color: var(--muted); }
input, select { font: inherit; color: var(--text); background: var(--ground);
  border: 1px solid var(--rule); border-radius: .25rem; padding: .2rem .4rem; }
select { max-width: 100%; }
input:focus-visible, button:focus-visible, select:focus-visible { outline: 2px solid var(--accent);
  outline-offset: 1px; }
input.small { width: 5rem; text-align: right; }
input.money { width: 8rem; text-align: right; }
input.changed { border-color: var(--mark); }
input[type="range"] { flex: 1 1 14rem; max-width: 30rem; padding: 0; accent-color: var(--accent); }
.knobs { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; margin: .75rem 0; }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem; }
.changes { margin: .25rem 0 .75rem; padding-left: 1.2rem; color: var(--muted);
  font-size: .9375rem; }
.sentence:empty, .wrong:empty { display: none; }
#what-if .sentence { font-size: 1.1rem; }
.wrong { color: var(--unusable); }
.more { color: var(--accent); } .fewer { color: var(--mark); }
td.strong { font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none;
  margin: .5rem 0 1rem; padding: 0; }
.gallery { display: inline-block; vertical-align: top; width: min(33rem, 100% - 1.5rem);
  margin: .75rem 1.5rem 1rem 0; }
.gallery h3 small { font-weight: 400; color: var(--muted); margin-left: .35rem; }
.gallery table { table-layout: fixed; width: 100%; font-size: .8125rem; }
.gallery th, .gallery td { padding: .15rem .3rem .15rem 0; border: 0; text-align: left;
  vertical-align: top; position: static; min-width: 0; }
.gallery thead th { font-weight: 400; font-size: .75rem; color: var(--muted); }
.gallery thead td, .gallery tbody th { width: 5.5rem; }
.gallery tbody th { color: var(--muted); background: none; }
.gallery img { display: block; width: 100%; max-width: 6.5rem; aspect-ratio: 1;
  object-fit: contain; background: var(--panel); border-radius: .2rem;
  image-rendering: pixelated; }
.gallery span { display: block; line-height: 1.3; }
.gallery .legend { font-size: .8125rem; margin: .35rem 0 0; }
.swatch { width: .8rem; height: .8rem; border: 1px solid var(--rule); border-radius: .15rem;
  margin-right: .35rem; vertical-align: -.08rem; }
summary { cursor: pointer; }
.verdicts { list-style: none; margin: 0; padding: 0; }
.verdicts > li { padding: .75rem 0; border-bottom: 1px solid var(--rule); }
.badge { display: inline-block; padding: .1rem .5rem; border-radius: .25rem; font-size: .875rem;
  font-weight: 600;
  background: var(--panel); margin-right: .5rem; }
.badge.sound { color: var(--sound); background: var(--sound-back); }
.badge.weak { color: var(--weak); background: var(--weak-back); }
.badge.unusable { color: var(--unusable); background: var(--unusable-back); }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) minmax(0, 1fr);
  gap: .3rem 1.25rem; margin: .5rem 0; }
dt { max-width: 16rem; }
dd { margin: 0; grid-column: 2; }
.tiles { display: flex; flex-wrap: wrap; gap: .5rem 2.5rem; margin: .75rem 0; }
.tiles > div { min-width: 8rem; }
.tiles dt { max-width: none; }
.tiles dd { font-size: 1.3rem; font-weight: 600; }
.tiles small { display: block; font-size: .875rem; font-weight: 400; color: var(--muted); }
@media screen and (max-width: 34rem) {
  .cards { overflow: visible; background: none; }
  .cards table, .cards tbody, .cards tfoot, .cards tr { display: block; }
  .cards thead, .cards tfoot td:empty, .cards .zero, .cards td:has(> span:empty) { display: none; }
  .cards tr { padding: .5rem 0; border-bottom: 1px solid var(--rule); }
  .cards th, .cards td { display: block; border: 0; padding: .1rem 0; max-width: none;
    position: static; text-align: right; white-space: normal; }
  .cards th { text-align: left; font-weight: 600; }
  .cards td[data-head]::before { content: attr(data-head); float: left; color: var(--muted);
    margin-right: 1rem; font-weight: 400; text-align: left; unicode-bidi: isolate; }
  .cards td::after { content: ""; display: block; clear: both; }
  .cards td.text { text-align: right; min-width: 0; }
}
@media (min-width: 34.01rem) and (max-width: 52rem) {
  #what-if th, #what-if td { padding-left: .4rem; padding-right: .4rem; }
  #what-if tbody th, #what-if thead th:first-child { padding-left: 0; }
  #what-if input.small { width: 4rem; }
}
@media (max-width: 34rem) {
  body { padding: 1rem .9rem 3rem; }
  .decision { padding: .9rem; }
  .decision table { font-size: .875rem; width: 100%; }
  .decision th, .decision td { padding-left: .25rem; padding-right: 0; }
  .decision tbody th { min-width: 0; padding-left: 0; }
  .decision td small { font-size: .82em; }
  .decision .sentence { font-size: 1.1rem; }
  tbody th { min-width: 6rem; max-width: 8rem; }
  th, td { padding: .35rem .5rem; }
  .gallery { width: 100%; margin-right: 0; }
  .gallery thead td, .gallery tbody th { width: 3.6rem; max-width: none; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .5rem; grid-column: 1; }
}
@media print {
  @page { margin: 16mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, details, button, #what-if, #reach, .ask { display: none; }
  .sign { display: block; margin-top: 1.5rem !important; white-space: pre-wrap; }
  .wide { overflow: visible; background: none; }
  table { font-size: 8.5pt; }
  th, td { padding: .2rem .4rem; }
  tbody th { position: static; }
  /* many columns: a sheet cannot be scrolled */
  .wide:has(thead th:nth-child(8)) table { font-size: 6.5pt; }
  .wide:has(thead th:nth-child(8)) :is(th, td) { padding: .15rem .2rem; }
  .wide:has(thead th:nth-child(8)) :is(tbody th, tbody td) { min-width: 0; }
  h2, h2 + .note, p:has(+ figure), .legend:has(+ .charts) { break-after: avoid; }
  .gallery { width: 47%; margin-right: 2%; }
  .gallery table { font-size: 7.5pt; }
  .gallery thead td, .gallery tbody th { width: 3.2rem; }
  figure, tr, li, .decision, .gallery, .note, .wide { break-inside: avoid; }
  .decision, .badge, .key, td, svg, img { print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
}
"""


def _name_colours(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


STYLE = (
    f":root {{ color-scheme: light dark; {_name_colours(LIGHT)} }}\n"
    # paper is always light
    "@media screen and (prefers-color-scheme: dark)"
    f" {{ :root {{ {_name_colours(DARK)} }} }}{CSS_RULES}"
)
