//! Tests the worker with a simulated controller: real streams, real processes.

mod container;
mod durable_python;
mod elsewhere;
mod engine;
mod environment;
mod exec;
mod gpus;
mod hostile;
mod journal;
mod limits;
mod llm;
mod parks;
mod processes;
mod python;
mod results;
mod room;
mod sandbox;
mod secrets;
mod session;
mod spawn;
mod stopped;
mod support;
mod tenants;
mod tools;
mod tree;
