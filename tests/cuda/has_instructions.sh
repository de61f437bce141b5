#!/bin/sh
# has_instructions.sh CUOBJDUMP OBJECT NAME...: fails, and removes the object, if its machine code lacks one of the instructions.
tool=$1 object=$2
shift 2
listing=$(PATH=$(dirname "$tool"):$PATH "$tool" -sass "$object") || exit 1
for name in "$@"; do
  case $listing in
    *" $name"*) ;;
    *) echo "$object has no $name in its machine code"; rm -f "$object"; exit 1 ;;
  esac
done
