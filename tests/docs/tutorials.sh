#!/usr/bin/env bash
# tutorials.sh SOURCE MONET [PAGE...]: follows the pages of docs/tutorials (or those named), each in an empty folder
# with links to `data` and `examples`. In the order of the page:
# - a yaml or python block is written to FILE if the line before the block ends with `FILE`: (in backquotes);
# - in a sh block, every line that begins with "monet " or "python3 " is run, with its continuation lines;
# - each line of a text block must occur in the output of the sh block before it; lines with "..." are not compared.
# A Python file that imports torch, monet or numpy is skipped where that module is missing. The files that it would
# have written are then copied from tests/docs/tutorials. A failure prints page, line and command.
# With KEEP=FOLDER the pages' folders are made there and stay (tests/browser/screenshots.mjs reads them).
set -euo pipefail
source=$(cd "$1" && pwd) monet=$(realpath "$2") python=${PYTHON:-/usr/bin/python3}
shift 2
[ -z "${KEEP:-}" ] || { mkdir -p "$KEEP"; KEEP=$(cd "$KEEP" && pwd); }
pages=("$@")
[ ${#pages[@]} -gt 0 ] || pages=("$source"/docs/tutorials/*.md)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
commands=0 compared=0

fail() { # MESSAGE
  echo "$page:$number: $1" >&2
  exit 1
}

has_module() { "$python" -c "import $1" >/dev/null 2>&1; }

# Whether the Python file of a command imports a module that is missing; prints the module's name.
missing_module() { # COMMAND
  local file module
  file=$(awk '{print $2}' <<<"$1")
  for module in torch monet numpy; do
    if grep -qE "^import $module\b" "$file" && ! has_module "$module"; then
      echo "$module"
      return 0
    fi
  done
  return 1
}

run_command() { # COMMAND
  local module
  if [[ $1 == python3\ * ]] && module=$(missing_module "$1"); then
    echo "skipped, $module is not installed: $1"
    mkdir -p out
    cp -n "$source"/tests/docs/tutorials/* out/
    skipped=yes
    return
  fi
  echo "+ $1"
  commands=$((commands + 1))
  bash -c "set -euo pipefail; monet() { '$monet' \"\$@\"; }; python3() { '$python' \"\$@\"; }; $1" \
    >"$scratch/one" 2>&1 || { cat "$scratch/one"; fail "failed: $1"; }
  cat "$scratch/one" >>"$scratch/output"
}

run_block() { # the lines of a sh block
  local line command=
  : >"$scratch/output"
  skipped=no
  while IFS= read -r line; do
    if [ -z "$command" ] && [[ $line != monet\ * && $line != python3\ * ]]; then continue; fi
    command+=$line
    if [[ $line == *\\ ]]; then command=${command%\\}; continue; fi
    run_command "$command"
    command=
  done <<<"$1"
}

compare_block() { # the lines of a text block
  local line
  [ "$skipped" = no ] || return 0
  while IFS= read -r line; do
    if [[ -z ${line// /} || $line == *...* ]]; then continue; fi
    compared=$((compared + 1))
    grep -qF -- "$line" "$scratch/output" || fail "not in the output of the command before: $line"
  done <<<"$1"
}

for page in "${pages[@]}"; do
  page=$(realpath "$page")
  folder=${KEEP:-$scratch}/$(basename "$page" .md)
  mkdir -p "$folder"
  ln -sfn "$source/data" "$folder/data"
  ln -sfn "$source/examples" "$folder/examples"
  cd "$folder"
  number=0 kind= block= before= skipped=no
  while IFS= read -r line; do
    number=$((number + 1))
    if [[ $line != '```'* ]]; then
      if [ -n "$kind" ]; then block+=$line$'\n'; elif [ -n "$line" ]; then before=$line; fi
    elif [ -z "$kind" ]; then
      kind=${line#'```'} block=
      kind=${kind:-none}
    else
      case $kind in
        yaml | python)
          if [[ $before =~ \`([^\`]+)\`:$ ]]; then
            mkdir -p "$(dirname "${BASH_REMATCH[1]}")"
            printf %s "$block" >"${BASH_REMATCH[1]}"
          fi
          ;;
        sh) run_block "$block" ;;
        text) compare_block "$block" ;;
      esac
      kind= before=
    fi
  done <"$page"
  cd /
done
[ "$commands" -ge ${#pages[@]} ] || fail "only $commands commands found"
echo "${#pages[@]} tutorials: $commands commands ran, $compared lines of output compared"
