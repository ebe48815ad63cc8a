/*
 * Who finishes an operation (ni_op_set in plugin/slots/op.h)? The starter closes the bracket, the poller reports the last channel;
 * each sets its flag by compare-exchange, and the exchange whose result shows both adds DONE. The dump thread may retire the
 * operation meanwhile (the communicator is finalized).
 *
 * Checked: exactly one of starter, poller and dump thread gets it, not before both have happened; a stale stop (an operation's handle of an earlier life)
 * changes nothing; a second stop of the same bracket changes nothing.
 * Broken on purpose:  -DTWO_STEPS     load and store instead of an exchange
 *                     -DLATE_LOOK     DONE is found by a load after the exchange
 *                     -DNO_GENERATION the handle's generation is not looked at
 */
#define CLOSED 1
#define KDONE 2
#define DONE 4
#define RETIRED 8
byte state = 0;         /* flags; LIVE throughout */
byte gen = 1;           /* in the same word: changed in the same atomic step */
byte got = 0, ended = 0;
bit closed = 0, all_stopped = 0; /* what really happened */

inline set(mygen, flag) {
  do
  :: atomic { old = state; g = gen };
#ifndef NO_GENERATION
     if :: g != mygen -> break :: else fi;
#endif
     if :: (old & (flag | RETIRED)) -> break :: else fi;
     now = old | flag;
     if :: (now & CLOSED) && (now & KDONE) -> now = now | DONE :: else fi;
#ifdef TWO_STEPS
     state = now; ok = 1;
#else
     atomic { if :: state == old && gen == g -> state = now; ok = 1 :: else -> ok = 0 fi };
#endif
     if
     :: ok ->
#ifdef LATE_LOOK
        now = state; if :: (now & CLOSED) && (now & KDONE) -> got++ :: else fi;
#else
        if :: (now & DONE) && !(old & DONE) -> got++; assert(closed && all_stopped) :: else fi;
#endif
        break
     :: else
     fi
  od
}

proctype starter() { byte old, g, now; bit ok; closed = 1; set(1, CLOSED); set(1, CLOSED); ended++ }
proctype poller() { byte old, g, now; bit ok; all_stopped = 1; set(1, KDONE); ended++ }
proctype stale() { byte old, g, now; bit ok; set(0, KDONE); ended++ }
proctype dump(bit final) {
  byte old;
  if
  :: final -> /* DESTROY: what is not done becomes incomplete */
     do
     :: old = state;
        if :: old & DONE -> break :: else fi;
        atomic { if :: state == old -> state = old | RETIRED; got++; break :: else fi }
     od
  :: else
  fi;
  ended++
}

init {
  bit final;
  if :: final = 0 :: final = 1 fi;
  atomic { run starter(); run poller(); run stale(); run dump(final) };
  ended == 4;
  assert(got == 1)
}
