/*
 * Done list and dirty bit (plugin/slots/done_list.h, publish_done in callbacks_in.h, ni_collect in drain.c): two threads push
 * finished operations; the push that finds the list empty sets the bit, after it; the dump thread takes the bit, then
 * everything on the list.
 *
 * Checked: each operation is drained once, and once all have been pushed and no bit is set the list is empty: nothing waits
 * for a bit that will not come.
 * Broken on purpose:  -DBIT_FIRST     the bit is set before the push
 *                     -DDRAIN_FIRST   the list is drained before the bit is taken
 *                     -DPLAIN_PUSH    the push stores instead of exchanging
 */
#define PER 2
#define N (2 * PER)

byte list = 0, next[N + 1], drained[N + 1], n_drained = 0, finished = 0;
bit dirty = 0;

proctype pusher(byte first) {
  byte i = 0, s, h; bit ok;
  do
  :: i < PER ->
     s = first + i;
#ifdef BIT_FIRST
     if :: list == 0 -> dirty = 1 :: else fi;
#endif
     do
     :: h = list;
        next[s] = h;
#ifdef PLAIN_PUSH
        list = s; ok = 1;
#else
        atomic { if :: list == h -> list = s; ok = 1 :: else -> ok = 0 fi };
#endif
        if :: ok -> break :: else fi
     od;
#ifndef BIT_FIRST
     if :: h == 0 -> dirty = 1 :: else fi;
#endif
     i++
  :: else -> break
  od;
  finished++
}

inline drain() {
  atomic { s = list; list = 0 };
  do
  :: s != 0 -> atomic { drained[s]++; assert(drained[s] == 1); n_drained++ }; s = next[s]
  :: else -> break
  od
}

proctype dump() {
  byte s;
  do
  :: dirty ->
#ifdef DRAIN_FIRST
     drain();
     dirty = 0
#else
     dirty = 0; /* one exchange with the test: only this thread clears it */
     drain()
#endif
  :: atomic { finished == 2 && !dirty -> assert(list == 0 && n_drained == N); break }
  od
}

init { atomic { run pusher(1); run pusher(1 + PER); run dump() } }
