#!/usr/bin/env bash
# readme_commands.sh SOURCE MONET FILES: runs every line (with what a backslash continues it) that starts with "monet " in the README's, docs/cli.md's and docs/results.md's
# shell blocks and the README's experiment, in a scratch folder with the data and examples of FILES; once where several say the same. Any failure fails.
set -euo pipefail
source=$1 monet=$2 files=$3
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
  count=$((count + 1))
  echo "+ $line"
  bash -c "set -euo pipefail; monet() { '$monet' \"\$@\"; }; $line" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
  }
done < <(awk '/^```sh/{on=1;next} /^```/{on=0} on && /^monet / {
  while (sub(/\\$/, "")) { getline more; $0 = $0 more }
  print
}' "$source/README.md" "$source/docs/cli.md" "$source/docs/results.md")
# The experiment file that the README shows.
awk '/^```yaml/{on=1;next} /^```/{on=0} on' "$source/README.md" >examples/from_readme.yaml
"$monet" run examples/from_readme.yaml -o from_readme >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
[ "$count" -ge 5 ] || { echo "only $count commands found"; exit 1; }
echo "$count commands ran"
