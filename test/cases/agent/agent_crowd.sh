#!/usr/bin/env bash
# Boxes of 300 users that say to be of a living process, which is root's, do not keep a real job from being
# told.
. "$(dirname "$0")/../../lib/case.sh"
skip_under tsan "256 readers, which take a minute to begin"
need python3
need_users 64001
python3 test/lib/agent_crowd.py
