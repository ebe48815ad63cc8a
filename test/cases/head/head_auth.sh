#!/usr/bin/env bash
# Tokens, addresses, TLS: who may do what with a head (test/lib/head_auth.py). As root also from another
# network namespace.
. "$(dirname "$0")/../../lib/head.sh"
need openssl
space=ni$$
if ip netns add "$space" 2>/dev/null; then
  at_exit 'ip netns del "$space"'
  { ip link add "$space" type veth peer name "peer$space" && ip link set "peer$space" netns "$space" name eth0 &&
    ip addr add 10.99.0.2/30 dev "$space" && ip link set "$space" up &&
    ip -n "$space" addr add 10.99.0.1/30 dev eth0 &&
    ip -n "$space" link set eth0 up && ip -n "$space" link set lo up; } 2>/dev/null && made=$space || made=
else
  made=
fi
python3 test/lib/head_auth.py "$made"
