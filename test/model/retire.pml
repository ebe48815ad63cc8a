/*
 * Unknown channel count (channel_over and check_retired in callbacks_channel.c, judge_unknown in judge.c): the poller
 * counts by plain stores; the dump thread judges, retires by an exchange, then reads the counts for the record. A second
 * channel may start and stop while it does. Stores of the poller may wait in a buffer until its fence.
 *
 * Checked: a record that misses a channel comes with a late line of that channel; an operation is not written twice.
 * Broken on purpose:  -DNO_SECOND_LOOK  the stop does not read the state again
 *                     -DNO_FENCE        it reads it again, but its store of prog may not have got there
 *                     -DOLD_COUNTS      the record uses the counts that it was judged by
 */
byte started = 1, stopped = 0; /* in memory: prog. Channel 0 has started */
byte my_started = 1, my_stopped = 0; /* the poller's own view */
bit buffered = 0;
bit retired = 0, ended = 0;
byte record = 0, late = 0, records = 0;

inline flush() { atomic { if :: buffered -> started = my_started; stopped = my_stopped; buffered = 0 :: else fi } }

proctype memory() {
end:
  do
  :: atomic { buffered -> started = my_started; stopped = my_stopped; buffered = 0 }
  :: atomic { ended && !buffered -> break }
  od
}

proctype poller() {
  byte ch = 0; bit r;
  do
  :: ch < 2 ->
     if
     :: ch == 1 -> r = retired;
        if :: !r -> atomic { my_started++; buffered = 1 } :: else fi
     :: else
     fi;
     r = retired;
     if
     :: r -> late++
     :: else ->
        atomic { my_stopped++; buffered = 1 };
#ifndef NO_SECOND_LOOK
#ifndef NO_FENCE
        flush();
#endif
        r = retired;
        if :: r -> late++ :: else fi
#endif
     fi;
     ch++
  :: else -> break
  od;
  ended = 1
}

proctype dump() {
  byte a, b;
  do
  :: records == 0 ->
     atomic { a = started; b = stopped };
     if
     :: a == b && a > 0 -> /* quiet and overtaken, says the judge */
        retired = 1;
#ifndef OLD_COUNTS
        atomic { a = started; b = stopped };
#endif
        record = b; records++
     :: else -> if :: ended && !buffered && started == stopped -> skip :: ended && started != stopped && !buffered -> break :: !ended -> skip fi
     fi
  :: else -> break
  od;
  (ended && !buffered);
  assert(records <= 1);
  assert(records == 0 || record + late >= 2)
}

init { atomic { run poller(); run dump(); run memory() } }
