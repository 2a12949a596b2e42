#!/bin/sh
# logged.sh LOG COMMAND…: writes what the command prints to LOG, and shows it if the command fails.
log=$1
shift
"$@" >"$log" 2>&1 || {
  cat "$log"
  exit 1
}
