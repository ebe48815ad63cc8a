# The exporter's benchmark; see test/bench/bench_exporter.sh for its settings.
.PHONY: bench-exporter
bench-exporter: exporter $(BUILD)/test/host/loggen
	$(Q)BUILD=$(BUILD) test/bench/bench_exporter.sh | tee $(BUILD)/bench_exporter.md

# What the index gains and costs; a part of make bench.
.PHONY: bench-index
bench-index: exporter $(BUILD)/test/host/loggen
	$(Q)BUILD=$(BUILD) test/bench/bench_index.sh | tee $(BUILD)/bench_index.md
bench: bench-index

# Sweeps of counters (test/bench/bench_counters.sh); a part of make bench.
.PHONY: bench-counters
$(BUILD)/test/bench/bench_sweep: $(EXP_LIB) $(FORMAT_LIB)
bench-counters: exporter $(BUILD)/test/bench/bench_sweep
	$(Q)BUILD=$(BUILD) test/bench/bench_counters.sh
	$(Q)BUILD=$(BUILD) test/bench/bench_record.sh
bench: bench-counters

# Two sweeps of NIC counters, with net_prof beside it; see test/bench/bench_netprof.sh for its settings.
.PHONY: bench-netprof
bench-netprof: exporter
	$(Q)BUILD=$(BUILD) test/bench/bench_netprof.sh | tee $(BUILD)/bench_netprof.md

# Time and memory against records, for one process, shards and merge, MPI; not a part of make bench: it takes minutes.
.PHONY: bench-scale
bench-scale: exporter $(BUILD)/test/host/loggen
	$(Q)BUILD=$(BUILD) test/bench/bench_scale.sh | tee $(BUILD)/bench_scale.md
