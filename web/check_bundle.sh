#!/bin/sh
# Rebuilds the viewer from its pinned packages and compares it with the committed web/dist.
# Usage: web/check_bundle.sh [BUILD_FOLDER]; needs node, npm and, the first time, the npm registry.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$here/../build/web}
mkdir -p "$work"
rm -rf "$work/src" "$work/dist"
cp -R "$here/src" "$here/build.mjs" "$here/package.json" "$here/package-lock.json" "$here/tsconfig.json" "$work/"
cd "$work"
npm ci --no-audit --no-fund --loglevel=error
npm run --silent check
npm run --silent build
diff -rq "$here/dist" "$work/dist"
echo "web/dist is what its sources build"
