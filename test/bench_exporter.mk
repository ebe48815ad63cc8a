# The exporter's benchmark; see test/bench/bench_exporter.sh for its settings.
.PHONY: bench-exporter
bench-exporter: exporter $(BUILD)/test/host/loggen
	$(Q)BUILD=$(BUILD) test/bench/bench_exporter.sh | tee $(BUILD)/bench_exporter.md
