/*
 * Init and finalize against one tick of the dump thread (ni_dump_join, ni_finalize, gather and close_sides in
 * dump_tick.c): a communicator joins by a list, and its finalize counts in `closings`; the dump thread looks for closing
 * communicators only when that count is not 0.
 *
 * Checked: when both communicators are finalized and no closing is counted any more, both are closed; the session ends
 * only then.
 * Broken on purpose:  -DCOUNT_LATE   the count is read after the joining list is taken
 *                     -DLIVE_ONLY    the session ends when no communicator is live, whatever the lists hold
 */
#define N 2
bit joining[N], side[N], closed[N], phase[N]; /* phase 1: CLOSING */
byte closings = 0, live = 0, gone = 0;
bit session = 0, ended_early = 0;

proctype app(byte c) {
  atomic { joining[c] = 1; live++ };
  phase[c] = 1;
  live--;
  closings++;
  gone++
}

inline take() {
  atomic { i = 0; do :: i < N -> if :: joining[i] -> joining[i] = 0; side[i] = 1; session = 1 :: else fi; i++ :: else -> break od; i = 0 }
}

proctype dump() {
  byte seen, i, open;
  bit over;
  do
  ::
#ifndef COUNT_LATE
     seen = closings;
#endif
     take();
#ifdef COUNT_LATE
     seen = closings;
#endif
     open = 0;
     if
     :: seen > 0 ->
        i = 0;
        do
        :: i < N ->
           if :: side[i] && !closed[i] && phase[i] -> closed[i] = 1 :: else fi; i++
        :: else -> break
        od;
        i = 0;
        closings = closings - seen
     :: else
     fi;
     /* the session: over when every communicator has said its last */
     if
     :: session ->
#ifdef LIVE_ONLY
        over = (live == 0);
#else
        atomic { over = !joining[0] && !joining[1] && (!side[0] || closed[0]) && (!side[1] || closed[1]) };
#endif
        if
        :: over -> atomic { assert((!side[0] || closed[0]) && (!side[1] || closed[1])); session = 0 }
        :: else
        fi
     :: else
     fi;
     if
     :: atomic { gone == N && closings == 0 && !joining[0] && !joining[1] -> assert(closed[0] && closed[1]); break }
     :: else
     fi
  od
}

init { atomic { run app(0); run app(1); run dump() } }
