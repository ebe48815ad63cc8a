# Sourced by those that compare with net_prof; needs BUILD and TMP, and takes the Python of PY where that is
# set.
# netprof_of VERSION: the real one of PyPI, once, in $NETPROF. Its pictures' libraries are not needed. 1: it
# cannot be had, $TMP/pip.
netprof_of() {
  NETPROF=$BUILD/netprof-$1
  [ ! -e "$NETPROF/net_prof" ] || return 0
  "${PY:-python3}" -m pip install -q --disable-pip-version-check --no-deps --target "$TMP/netprof" "net_prof==$1" >"$TMP/pip" 2>&1 || return 1
  mv "$TMP/netprof" "$NETPROF" 2>/dev/null || rm -rf "$TMP/netprof"
}
