#!/usr/bin/env bash
# readme_commands.sh SOURCE MONET FILES [LEFT_OUT...]: runs the commands of README.md's table and every line (with what a
# backslash continues it) that starts with "monet " in the shell blocks of docs/reference/command-line.md,
# docs/reference/commands/*.md and docs/results.md, in a scratch folder with the data and examples of FILES. Equal lines
# run once. Any failure fails. Commands with a word of LEFT_OUT, of which there must be some, are left to other tests.
set -euo pipefail
source=$1 monet=$2 files=$3
shift 3
declare -A left_out
for word; do left_out[$word]=0; done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$files/data" "$files/examples" "$scratch/"
cd "$scratch"
count=0
declare -A ran
while IFS= read -r line; do
  line=${line%%  #*}
  read -ra words <<<"$line"
  [ -z "${ran[${words[*]}]:-}" ] || continue
  ran[${words[*]}]=yes
  for word in "${words[@]}"; do
    [ -z "${left_out[$word]:-}" ] || { left_out[$word]=1; continue 2; }
  done
  count=$((count + 1))
  echo "+ $line"
  bash -c "set -euo pipefail; monet() { '$monet' \"\$@\"; }; $line" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
  }
done < <(awk '/^```sh/{on=1;next} /^```/{on=0} on && /^monet / {
  while (sub(/\\$/, "")) { getline more; $0 = $0 more }
  print
}
FILENAME ~ /README.md$/ && /^\|/ && match($0, /`monet [^`]*`/) { print substr($0, RSTART + 1, RLENGTH - 2) }' "$source/README.md" "$source/docs/reference/command-line.md" "$source"/docs/reference/commands/*.md "$source/docs/results.md")
for word in "${!left_out[@]}"; do
  [ "${left_out[$word]}" = 1 ] || { echo "no command has $word"; exit 1; }
done
[ "$count" -ge 5 ] || { echo "only $count commands found"; exit 1; }
echo "$count commands ran"
