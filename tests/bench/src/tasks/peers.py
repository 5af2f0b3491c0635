"""Tasks that do nothing, in HyperQueue and in Ray: prints `NAME SECONDS_PER_TASK` for each of them that is installed.

Usage: peers.py TASKS CORES. Each starts its own server on this machine. HyperQueue starts a process for each task, Ray calls a function in a
process that it keeps.
"""

import sys
import time


def hyperqueue(tasks, cores):
    from hyperqueue import Job, LocalCluster
    from hyperqueue.cluster import WorkerConfig

    def run(client, count):
        job = Job()
        for _ in range(count):
            job.program(["true"], stdout=None, stderr=None)
        client.wait_for_jobs([client.submit(job)])

    with LocalCluster() as cluster:
        cluster.start_worker(WorkerConfig(cores=cores))
        client = cluster.client()
        return timed(lambda count: run(client, count), tasks)


def ray(tasks, cores):
    import ray

    ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False, logging_level="error", _node_ip_address="127.0.0.1")
    nothing = ray.remote(lambda: None)
    try:
        return timed(lambda count: ray.get([nothing.remote() for _ in range(count)]), tasks)
    finally:
        ray.shutdown()


def timed(run, tasks):
    run(tasks // 10)
    begun = time.perf_counter()
    run(tasks)
    return (time.perf_counter() - begun) / tasks


def main():
    tasks, cores = (int(text) for text in sys.argv[1:])
    for name, measure in (("hyperqueue", hyperqueue), ("ray", ray)):
        try:
            seconds = measure(tasks, cores)
        except ImportError:
            continue
        print(name, seconds, flush=True)


main()
