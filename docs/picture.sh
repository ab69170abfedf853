#!/usr/bin/env bash
# Draws docs/report.png: the report of the demo's campaign once it is planned. Needs .venv and chromium; two minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
.venv/bin/python - "$place/demo" <<'PY'
import sys

from allotment.campaign.campaign import Campaign
from allotment.cli.demo import FULL_DEMO, _write_settings
from allotment.reports.page import write_page

campaign = Campaign.create(sys.argv[1], _write_settings(FULL_DEMO, quick=False, seed=0))
campaign.estimate(workers=2)
write_page(campaign.report(), campaign.folder / "report.html")
PY
chromium --headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update \
  --disable-sync --no-first-run --user-data-dir="$place/browser" --hide-scrollbars --window-size=900,820 \
  --screenshot=docs/report.png "file://$place/demo/report.html"
