//! The client and the protocols against servers in the same process: strict about requests, and free to answer anything. Time is
//! virtual and the network is memory, so waits cost nothing and every run is the same.

mod anthropic;
mod bedrock;
mod chat;
mod client;
mod cohere;
mod conversation;
mod gate;
mod gemini;
mod hostile;
mod lasting;
mod machine;
mod network;
mod server;
mod strict;
mod talk;
mod vertex;
