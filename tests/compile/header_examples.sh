#!/usr/bin/env bash
# header_examples.sh ROOT CXX [GENERATED]: compiles the example at the beginning of every header in ROOT/include/monet, one
# translation unit per stage. CXX is the compiler; GENERATED is a folder with generated headers (monet/version.hpp). An
# example is the lines "//   code" after "// Example:" and before "#pragma once", in the namespace of its header. Includes
# in it precede everything else. Fails if a header has no example or an example does not compile; messages of the compiler
# name header and line.
set -euo pipefail
usage='usage: header_examples.sh ROOT CXX [GENERATED]'
root=${1:?$usage} cxx=${2:?$usage} generated=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# example HEADER: the lines of a header's example as "LINE CODE".
example() {
  awk '/^#pragma once/ { exit }
       inside && !/^\/\/   / { exit }
       inside { print NR, substr($0, 6) }
       /^\/\/ Example:$/ { inside = 1 }' "$1"
}

# scope HEADER STAGE: the namespaces of a header's example.
scope() {
  local name=${1##*/}
  name=${name%.hpp}
  case $2/$name in
    reference/stream_*) echo "namespace monet::stream::example_$2_$name {" ;;
    *) echo "namespace monet::example_$2_$name {" ;;
  esac
}

failed=0 count=0
for folder in "$root"/include/monet/*/; do
  stage=$(basename "$folder")
  unit=$work/$stage.cpp
  : >"$work/body"
  for header in "$folder"*.hpp; do
    example "$header" >"$work/example"
    if [ ! -s "$work/example" ]; then
      echo "$header: no example" >&2
      failed=1
      continue
    fi
    echo "#include \"monet/$stage/${header##*/}\"" >>"$unit"
    sed -n 's/^[0-9]* \(#include .*\)/\1/p' "$work/example" >>"$unit"
    {
      scope "$header" "$stage"
      grep -v '^[0-9]* #include ' "$work/example" | sed "s|^\([0-9]*\) \(.*\)|#line \1 \"$header\"\n\2|"
      echo '}'
    } >>"$work/body"
    count=$((count + 1))
  done
  [ -e "$unit" ] || continue
  cat "$work/body" >>"$unit"
  "$cxx" -std=c++20 -fsyntax-only -Wall -Wextra -Wno-unused "-I$root/include" ${generated:+"-I$generated"} "$unit" || failed=1
done
echo "$count examples"
exit $failed
