//! Known servers that speak OpenAI's chat completions: names and addresses, and where they differ.

/// A known server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// Its name as a provider.
    pub name: &'static str,
    /// The address of its API. `{account}` stands for a part that each customer has to fill in.
    pub base_url: &'static str,
    /// Whether streams report usage only when they are asked with `stream_options`. False for a server that refuses the
    /// member and reports usage anyway.
    pub stream_options: bool,
    /// Whether ids of calls must have nine letters and digits.
    pub nine_letter_ids: bool,
}

const fn server(name: &'static str, base_url: &'static str) -> Server {
    Server { name, base_url, stream_options: true, nine_letter_ids: false }
}

/// All of them. The last two serve embeddings and rankings only.
pub const SERVERS: [Server; 18] = [
    server("ai21", "https://api.ai21.com/studio/v1"),
    server("cloudflare", "https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1"),
    server("deepinfra", "https://api.deepinfra.com/v1/openai"),
    server("deepseek", "https://api.deepseek.com"),
    server("ernie", "https://qianfan.baidubce.com/v2"),
    server("github", "https://models.inference.ai.azure.com"),
    server("groq", "https://api.groq.com/openai/v1"),
    server("hunyuan", "https://api.hunyuan.cloud.tencent.com/v1"),
    server("minimax", "https://api.minimax.chat/v1"),
    Server { stream_options: false, nine_letter_ids: true, ..server("mistral", "https://api.mistral.ai/v1") },
    server("moonshot", "https://api.moonshot.cn/v1"),
    server("openrouter", "https://openrouter.ai/api/v1"),
    server("perplexity", "https://api.perplexity.ai"),
    server("qianwen", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
    server("xai", "https://api.x.ai/v1"),
    server("zhipuai", "https://open.bigmodel.cn/api/paas/v4"),
    server("jina", "https://api.jina.ai/v1"),
    server("voyageai", "https://api.voyageai.com/v1"),
];

/// OpenAI's own address.
pub const OPENAI: &str = "https://api.openai.com/v1";

/// The server of that name.
pub fn find(name: &str) -> Option<&'static Server> {
    SERVERS.iter().find(|server| server.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_addresses_are_encrypted() {
        assert_eq!(SERVERS.iter().map(|server| server.name).collect::<BTreeSet<_>>().len(), SERVERS.len());
        assert!(
            SERVERS.iter().all(|server| server.base_url.starts_with("https://") && !server.base_url.ends_with('/'))
        );
        assert_eq!(find("groq").map(|server| server.base_url), Some("https://api.groq.com/openai/v1"));
        assert_eq!(find("unknown"), None);
    }
}
