//! The measured part of etcd's interface, with the same gRPC library as ours.

use anyhow::Result;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

/// A client of one member.
pub(super) struct Client(Grpc<Channel>);

/// `etcdserverpb.PutRequest`.
#[derive(Clone, PartialEq, Message)]
struct Put {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `etcdserverpb.PutResponse`, whose content is not needed, and an empty request.
#[derive(Clone, PartialEq, Message)]
struct Nothing {}

/// `etcdserverpb.StatusResponse`.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(uint64, tag = "4")]
    leader: u64,
}

/// `etcdserverpb.ResponseHeader`.
#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(uint64, tag = "2")]
    member_id: u64,
}

impl Client {
    pub(super) fn new(channel: Channel) -> Self {
        Self(Grpc::new(channel))
    }

    pub(super) async fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let put = Put { key: key.to_vec(), value: value.to_vec() };
        self.call::<_, Nothing>("/etcdserverpb.KV/Put", put).await.map(drop)
    }

    /// True if this member leads.
    pub(super) async fn leads(&mut self) -> Result<bool> {
        let status: Status = self.call("/etcdserverpb.Maintenance/Status", Nothing {}).await?;
        Ok(status.header.is_some_and(|header| header.member_id == status.leader))
    }

    async fn call<A, B>(&mut self, path: &'static str, ask: A) -> Result<B>
    where
        A: Message + Send + Sync + 'static,
        B: Message + Default + Send + Sync + 'static,
    {
        self.0.ready().await?;
        let path = http::uri::PathAndQuery::from_static(path);
        let answer = self.0.unary(tonic::Request::new(ask), path, ProstCodec::<A, B>::default()).await?;
        Ok(answer.into_inner())
    }
}
