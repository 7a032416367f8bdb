#!/bin/sh
# Makes ./configure; needs autoconf, automake and pkg-config.
set -eu
cd "$(dirname "$0")"
exec autoreconf --force --install --warnings=all,no-portability
