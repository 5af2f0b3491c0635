//! A controller and a worker in one process.
