"""A graph of LangGraph whose effects are steps and whose model is that of the job. There is no checkpointer: the job's record is one."""

from typing import TypedDict

from atlas.durable import step
from atlas.runtime.base import AgentBase
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    topic: str
    found: str
    text: str


@step
async def search(topic):
    return f"three pages about {topic}"


class Researcher(AgentBase):
    async def find(self, state: State) -> State:
        return {"found": await search(state["topic"])}

    async def write(self, state: State) -> State:
        answer = await self.context.model(f"Summarize {state['found']}.")
        return {"text": answer.text}

    async def execute(self, input_data):
        graph = StateGraph(State)
        graph.add_node("find", self.find)
        graph.add_node("write", self.write)
        graph.add_edge(START, "find")
        graph.add_edge("find", "write")
        graph.add_edge("write", END)
        end = await graph.compile().ainvoke({"topic": input_data["topic"]})
        return {"text": end["text"], "found": end["found"]}
