#!/bin/bash
# check_words.sh [ROOT]: checks the language of comments, names, messages and documents against
# docs/contributing/style.md. Prints each place that breaks a rule; exit code 1 if there is one.
# The words are in check_words.txt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/..}"

# Files of the folders and names given whose names end in one of the extensions.
files() { # PATTERN PATH...
  local pattern=$1
  shift
  find "$@" -type f -not -path '*/__pycache__/*' | grep -E "\.($pattern)$" | LC_ALL=C sort
}

list=$here/check_words.txt
mapfile -t code < <(files 'cpp|hpp|in|inl' include src apps python)
mapfile -t text < <(files 'md|py|pyi|json' docs python; printf '%s\n' README.md HACKING.md CONTRIBUTING.md SECURITY.md CHANGELOG.md)
words=$(sed -n 's/^word //p' "$list" | paste -sd '|')
openers=$(sed -n 's/^opener //p' "$list" | paste -sd '|')
names=$(sed -n 's/^name //p' "$list" | paste -sd '|')

found=$(
  grep -nHwE "$words" "${code[@]}" "${text[@]}" || true
  grep -nHE "\\b($names)" "${code[@]}" || true
  grep -nHE "^ *///? ($openers) " "${code[@]}" || true
  for file in "${code[@]}"; do
    IFS= read -r first <"$file" || true
    [[ $first == //* ]] || printf '%s:1: begins without a comment\n' "$file"
  done
)
[ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
