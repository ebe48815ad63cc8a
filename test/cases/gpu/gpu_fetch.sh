#!/usr/bin/env bash
# test/gpu/fetch_nccl.py, with a registry of our own: what has the right hash is kept and not asked for again;
# what has not is refused and leaves nothing; where nobody answers it says so with 77.
. "$(dirname "$0")/../../lib/case.sh"
need python3
export XDG_CACHE_HOME=$TMP/cache
python3 - "$TMP/registry" <<'EOS'
import hashlib, json, os, sys, zipfile
root = sys.argv[1]
os.makedirs(f"{root}/pypi/nvidia-nccl-cu13")
def wheel(release):
    name = f"nvidia_nccl_cu13-{release}-py3-none-manylinux_2_27_x86_64.whl"
    with zipfile.ZipFile(f"{root}/{name}", "w") as file:
        for part in ("lib/libnccl.so.2", "include/nccl.h", "include/other.h"):
            file.writestr(f"nvidia/nccl/{part}", f"{part} of {release}")
    with open(f"{root}/{name}", "rb") as file:
        data = file.read()
    return {"filename": name, "url": f"/{name}", "size": len(data),
            "digests": {"sha256": hashlib.sha256(data).hexdigest()}}
releases = {release: [wheel(release)] for release in ("9.1.1", "9.1.2")}
releases["9.1.2"][0]["digests"]["sha256"] = "0" * 64
with open(f"{root}/pypi/nvidia-nccl-cu13/json", "w") as file:
    json.dump({"releases": releases}, file)
EOS
python3 -u -m http.server --bind 127.0.0.1 --directory "$TMP/registry" 0 >"$TMP/server" 2>"$TMP/asked" &
at_exit "kill $!"
for ((i = 0; i < 300; i++)); do grep -q port "$TMP/server" && break; sleep 0.1; done
NI_PYPI=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\).*/\1/p' "$TMP/server")
export NI_PYPI no_proxy=127.0.0.1
fetch() { # exit status expected, then releases
  local rc=0
  test/gpu/fetch_nccl.py "${@:2}" >"$TMP/out" 2>"$TMP/err" || rc=$?
  [ $rc = "$1" ] || { fail "${*:2}: exit $rc, $1 expected"; cat "$TMP/err"; }
}
wheels=$TMP/cache/nccl-inspector/wheels
fetch 0 9.1.1
[ "$(cat "$(cat "$TMP/out")")" = "lib/libnccl.so.2 of 9.1.1" ] || fail "not the library"
[ "$(find "$wheels/9.1.1" -type f | wc -l)" = 2 ] || fail "more is kept than the library and its header"
grep -q 'fetching nvidia-nccl-cu13 9.1.1' "$TMP/err" || fail "it does not say what it downloads"
: >"$TMP/asked"
fetch 0 9.1.1
[ ! -s "$TMP/asked" ] || fail "what is kept was fetched again"
fetch 1 9.1.2
grep -q 'has SHA-256 .*, not 0000' "$TMP/err" || fail "a wrong hash is not named"
fetch 1 9.1.3
[ "$(ls "$wheels")" = "9.1.1
lock" ] || fail "something is left: $(ls "$wheels")"
NI_PYPI=http://127.0.0.1:9 fetch 77 9.1.2
grep -q 'no registry answers' "$TMP/err" || fail "no line for no registry"
finish
