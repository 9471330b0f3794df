#!/usr/bin/env bash
# help_pages.sh MONET FOLDER: the manual page and the completions in FOLDER have every command and option that
# --help prints, bash's completes them, and the shells and groff that are installed accept their files.
set -euo pipefail
monet=$1 folder=$2
failed=0
fail() { echo "error: $*" >&2; failed=1; }

# Subcommands that --help of a command lists.
subcommands() { "$monet" "$@" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) .*/\1/p'; }
commands=()
for command in $(subcommands); do
  commands+=("$command")
  for search in $(subcommands "$command"); do
    commands+=("$command $search")
  done
done
[ ${#commands[@]} -ge 16 ] || fail "only ${#commands[@]} commands"

source "$folder/monet.bash"
complete_words() { # WORD...: completes the last
  COMP_WORDS=(monet "$@") COMP_CWORD=$#
  _monet
  printf '%s\n' "${COMPREPLY[@]}" | sort
}
for command in "${commands[@]}"; do
  # shellcheck disable=SC2086
  mapfile -t options < <("$monet" $command --help | grep -oE '^  (-[a-z],)?--[a-z0-9-]+' | grep -oE -- '-[a-z0-9-]+' | sort)
  # shellcheck disable=SC2086
  diff <(printf '%s\n' "${options[@]}" | grep -v '^-h$') <(complete_words $command -) >&2 || fail "bash, monet $command"
  grep -qF ".SS monet $command" "$folder/monet.1" || fail "monet.1: no section of $command"
  function=_monet__${command/ /__}
  for option in "${options[@]}"; do
    case $option in -h | --help) continue ;; esac
    sed -n "/^\.SS monet $command\$/,/^\.SS/p" "$folder/monet.1" | grep -F -- "${option//-/\\-}\\fR" >/dev/null || fail "monet.1: $command $option"
    sed -n "/^$function()/,/^}/p" "$folder/_monet" | grep -F -- "'*$option[" >/dev/null || fail "_monet: $command $option"
    name=${option#-}
    case $name in -*) name="-l ${name#-}" ;; *) name="-s $name" ;; esac
    grep -F "\"/${command/ //}\"" "$folder/monet.fish" | grep -F -- " $name " >/dev/null || fail "monet.fish: $command $option"
  done
done
[ "$(complete_words optimise fu)" = fusion ] || fail "optimise fu: $(complete_words optimise fu)"
[ "$(complete_words schedule --batch 2 --mode l)" = layer-by-layer ] || fail "--mode l"
[ -z "$(complete_words schedule --hardware x)" ] || fail "file names are bash's to complete"

if command -v groff >/dev/null; then
  warnings=$(groff -man -Tascii -ww "$folder/monet.1" 2>&1 >/dev/null)
  [ -z "$warnings" ] || fail "groff: $warnings"
fi
if command -v zsh >/dev/null; then zsh -n "$folder/_monet" || fail "zsh"; fi
if command -v fish >/dev/null; then fish -n "$folder/monet.fish" || fail "fish"; fi
exit "$failed"
