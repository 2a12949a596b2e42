"""kernel_times.py: the kernels that ncu timed, from its CSV, with the longest first."""
import collections
import csv
import sys


def main():
    times, calls = collections.Counter(), collections.Counter()
    for row in csv.DictReader(line for line in sys.stdin if line.startswith('"')):
        name = row["Kernel Name"][:90]
        times[name] += float(row["Metric Value"].replace(",", "")) / 1000
        calls[name] += 1
    for name, microseconds in times.most_common(30):
        print(f"{microseconds:9.1f} us {calls[name]:4d} {name}")


if __name__ == "__main__":
    main()
