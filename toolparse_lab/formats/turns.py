"""Tokens of chat templates: those that end a turn or begin the next one.

An answer is one turn of the assistant. What a model writes after the end of it, or after the header
of another role, is a conversation that it made up.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turns:
    """The literals of one family of chat templates.

    ends: what ends a turn or a message. user, system, tool, assistant: what begins a message of
    that role, without the white space after it. results: what begins the result of a tool, inside
    of a message of any role. several: the assistant's turn may have several messages, so that its
    own header after an end goes on with the turn.
    """

    ends: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    assistant: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    several: bool = False

    @property
    def foreign(self) -> tuple[str, ...]:
        """The headers of every role but the assistant's, and the openers of results."""
        return (*self.user, *self.system, *self.tool, *self.results)


def _headers(pattern: str, *roles: str) -> tuple[str, ...]:
    return tuple(pattern.replace("*", role) for role in roles)


_CHATML = "<|im_start|>*"
_LLAMA3 = "<|start_header_id|>*<|end_header_id|>"
_LLAMA4 = "<|header_start|>*<|header_end|>"
_GRANITE = "<|start_of_role|>*<|end_of_role|>"
_COHERE = "<|START_OF_TURN_TOKEN|>*"

TURNS: dict[str, Turns] = {
    # Qwen, Hermes, MiMo, StepFun, InternLM 2, MiniCPM, OLMo, with names of roles of their own
    "chatml": Turns(
        ends=("<|im_end|>", "<|endoftext|>"), user=_headers(_CHATML, "user", "human"),
        system=_headers(_CHATML, "system", "developer"),
        tool=_headers(_CHATML, "tool", "tool_response", "function", "environment", "observation",
                      "ipython"),
        assistant=_headers(_CHATML, "assistant"),
        results=("<tool_response>", "<tool_result>", "<tool_output>", "<function_results>")),
    # A call is a message of its own after the end of the text, so an end does not end the turn
    "hyperclovax": Turns(
        ends=("<|im_end|>", "<|stop|>", "<|endofturn|>"), user=_headers(_CHATML, "user"),
        system=_headers(_CHATML, "system", "tool_list"), tool=_headers(_CHATML, "tool/"),
        assistant=_headers(_CHATML, "assistant -> tool/function_call"), several=True),
    "lfm2": Turns(ends=("<|im_end|>",), results=("<|tool_response_start|>",)),
    "bielik": Turns(ends=("<|im_end|>",), results=("<|function_output|>",)),
    "internlm": Turns(
        ends=("<|im_end|>", "<eoa>"), user=("<|User|>", "<|Human|>"), system=("<|System|>",),
        assistant=("<|Bot|>",)),
    "jais": Turns(ends=("<|endoftext|>",), user=("[|Human|]",), assistant=("[|AI|]",)),
    # Mistral's older templates as well; what follows [/INST] is the answer
    "llama2": Turns(ends=("</s>",), user=("[INST]",), system=("<<SYS>>",), assistant=("[/INST]",)),
    # CWM and Functionary 3 as well
    "llama3": Turns(
        ends=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"), user=_headers(_LLAMA3, "user"),
        system=_headers(_LLAMA3, "system", "developer"),
        tool=_headers(_LLAMA3, "ipython", "tool", "tool: function", "function", "environment"),
        assistant=_headers(_LLAMA3, "assistant")),
    "llama4": Turns(
        ends=("<|eot|>", "<|eom|>", "<|end_of_text|>"), user=_headers(_LLAMA4, "user"),
        system=_headers(_LLAMA4, "system", "developer"), tool=_headers(_LLAMA4, "ipython", "tool"),
        assistant=_headers(_LLAMA4, "assistant")),
    # Thoughts, calls and the answer are messages of one turn, as in Harmony
    "muse": Turns(
        ends=("<|eom|>", "<|eot|>"), user=("<|start|>user",),
        system=("<|start|>system", "<|start|>developer"), tool=("<|start|>tool",),
        assistant=("<|start|>assistant",), several=True),
    "functionary": Turns(
        ends=("<|stop|>",), user=("<|from|>user",), system=("<|from|>system",),
        assistant=("<|from|>assistant",)),
    # FunctionGemma as well; results are a fence in the message of the user
    "gemma": Turns(
        ends=("<end_of_turn>", "<eos>"), user=("<start_of_turn>user",),
        system=("<start_of_turn>system", "<start_of_turn>developer"), tool=("<start_of_turn>tool",),
        assistant=("<start_of_turn>model", "<start_of_turn>assistant"),
        results=("```tool_response", "```tool_output", "<start_function_response>")),
    "gemma4": Turns(
        ends=("<turn|>", "<eos>"), user=("<|turn>user",),
        system=("<|turn>system", "<|turn>developer"), tool=("<|turn>tool",),
        assistant=("<|turn>model", "<|turn>assistant"), results=("<|tool_response>",)),
    "mistral": Turns(
        ends=("</s>",), user=("[INST]",), system=("[SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]"),
        assistant=("[/INST]",), results=("[TOOL_RESULTS]", "[TOOL_CONTENT]")),
    # The bar is U+FF5C, the block between words U+2581
    "deepseek": Turns(
        ends=("<｜end▁of▁sentence｜>",), user=("<｜User｜>",),
        system=("<｜begin▁of▁sentence｜>", "<｜System｜>"), assistant=("<｜Assistant｜>",),
        results=("<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>", "<tool_result>",
            "<function_results>")),
    # The same tokens as some tokenizers and fine-tunes write them
    "deepseek_ascii": Turns(
        ends=("<|end_of_sentence|>", "<|EOT|>"), user=("<|User|>",),
        system=("<|begin_of_sentence|>",), assistant=("<|Assistant|>",),
        results=("<|tool_outputs_begin|>", "<|tool_output_begin|>")),
    # No token ends a turn: the header of the next one does
    "glm": Turns(
        ends=("<|endoftext|>",), user=("<|user|>",), system=("<|system|>",),
        tool=("<|observation|>",), assistant=("<|assistant|>",), results=("<tool_response>",)),
    # Granite's vision models, Sarashina and Zephyr have these headers too
    "phi": Turns(
        ends=("<|end|>", "<|endoftext|>"), user=("<|user|>",), system=("<|system|>",),
        tool=("<|tool|>", "<|tool_response|>"), assistant=("<|assistant|>",)),
    "apriel": Turns(
        ends=("<|end|>",), user=("<|user|>",), system=("<|system|>",), tool=("<|tool_result|>",),
        assistant=("<|assistant|>",)),
    # K-EXAONE writes the tokens in angle brackets
    "exaone": Turns(
        ends=("[|endofturn|]", "<|endofturn|>"), user=("[|user|]", "<|user|>"),
        system=("[|system|]", "<|system|>"), tool=("[|tool|]", "<|tool|>"),
        assistant=("[|assistant|]", "<|assistant|>"), results=("<tool_result>",)),
    "granite": Turns(
        ends=("<|end_of_text|>",), user=_headers(_GRANITE, "user"),
        system=_headers(_GRANITE, "system", "available_tools", "tools", "documents"),
        tool=_headers(_GRANITE, "tool_response", "tool", "ipython"),
        assistant=_headers(_GRANITE, "assistant"), results=("<tool_response>",)),
    "cohere": Turns(
        ends=("<|END_OF_TURN_TOKEN|>", "<EOS_TOKEN>"),
        user=(*_headers(_COHERE, "<|USER_TOKEN|>"), "<|USER_TOKEN|>"),
        system=(*_headers(_COHERE, "<|SYSTEM_TOKEN|>"), "<|SYSTEM_TOKEN|>"),
        assistant=(*_headers(_COHERE, "<|CHATBOT_TOKEN|>"), "<|CHATBOT_TOKEN|>"),
        results=("<|START_TOOL_RESULT|>", "<results>")),
    # <|call|> hands the turn over; <|end|> ends a message and the turn may go on
    "harmony": Turns(
        ends=("<|end|>", "<|return|>", "<|call|>"), user=("<|start|>user",),
        system=("<|start|>system", "<|start|>developer"),
        tool=("<|start|>functions.", "<|start|>tool", "<|start|>browser", "<|start|>python"),
        assistant=("<|start|>assistant",), several=True),
    "solar_open": Turns(
        ends=("<|end|>", "<|calls|>"), user=("<|begin|>user",), system=("<|begin|>system",),
        tool=("<|begin|>tool",), assistant=("<|begin|>assistant",),
        results=("<|tool_response:begin|>", "<|tool_response|>"), several=True),
    # A result has no role of its own: it is a heading in a message of the system
    "kimi_k2": Turns(
        ends=("<|im_end|>", "[EOS]", "[EOT]"), user=("<|im_user|>",), system=("<|im_system|>",),
        assistant=("<|im_assistant|>",), results=("## Return of ",)),
    "kimi_k3": Turns(
        ends=("<|end_of_msg|>", "<|close|>message<|sep|>"), user=('<|open|>message role="user"',),
        system=('<|open|>message role="system"',), tool=('<|open|>message role="tool"',),
        assistant=('<|open|>message role="assistant"',)),
    "minimax_m1": Turns(
        ends=("<end_of_sentence>",), user=("<beginning_of_sentence>user",),
        system=("<beginning_of_sentence>system",), tool=("<beginning_of_sentence>tool",),
        assistant=("<beginning_of_sentence>ai",)),
    # The brackets are the tokens as they are written, not a pattern
    "minimax_m2": Turns(
        ends=("[e~[",), user=("]~b]user",), system=("]~b]system", "]~!b[", "]~b]developer"),
        tool=("]~b]tool",), assistant=("]~b]ai",), results=("<response>",)),
    "nemotron": Turns(
        ends=("<SPECIAL_12>",), user=("<SPECIAL_11>User",), system=("<SPECIAL_10>System",),
        tool=("<SPECIAL_11>Tool",), assistant=("<SPECIAL_11>Assistant",),
        results=("<TOOL_RESPONSE>",)),
    "nemotron_4": Turns(
        user=("<extra_id_1>User",), system=("<extra_id_0>System",), tool=("<extra_id_1>Tool",),
        assistant=("<extra_id_1>Assistant",)),
    "ling": Turns(
        ends=("<|role_end|>",), user=("<role>HUMAN</role>", "<role>USER</role>"),
        system=("<role>SYSTEM</role>",), tool=("<role>OBSERVATION</role>",),
        assistant=("<role>ASSISTANT</role>",)),
    # Tags of plain words, therefore in PLAIN as well
    "laguna": Turns(
        ends=("</assistant>",), user=("<user>",), system=("<system>",), assistant=("<assistant>",),
        results=("<tool_response>",)),
    # Roles are words before a colon, parted by one token
    "reka": Turns(
        ends=("<sep>",), user=("human:",), system=("system:",), assistant=("assistant:",)),
    # A role is a word before its token; the call is a message of its own
    "gigachat": Turns(
        ends=("<|message_sep|>",), user=("user<|role_sep|>",),
        system=("system<|role_sep|>", "developer system<|role_sep|>"),
        tool=("function result<|role_sep|>",),
        assistant=("assistant<|role_sep|>", "function call<|role_sep|>"), several=True),
    "apertus": Turns(
        ends=("<|assistant_end|>",), user=("<|user_start|>",),
        system=("<|system_start|>", "<|developer_start|>"), assistant=("<|assistant_start|>",)),
    "seed_oss": Turns(
        ends=("<seed:eos>",), user=("<seed:bos>user",), system=("<seed:bos>system",),
        tool=("<seed:bos>tool",), assistant=("<seed:bos>assistant",)),
    "hunyuan": Turns(
        ends=("<｜hy_eos｜>", "<|eos|>"), user=("<｜hy_User｜>",),
        system=("<｜hy_begin▁of▁sentence｜>", "<|startoftext|>"),
        assistant=("<｜hy_Assistant｜>", "<|extra_0|>"),
        results=("<tool_response>", "<tool_responses>")),
    "step3": Turns(
        ends=("<|EOT|>",), user=("<|BOT|>user", "<|BOT|>human"), system=("<|BOT|>system",),
        tool=("<|BOT|>tool_response",), assistant=("<|BOT|>assistant",),
        results=("<｜tool_response_begin｜>",)),
    "longcat": Turns(
        ends=("</longcat_s>", "<|longcat_end|>"), user=("<longcat_user>",),
        system=("<longcat_system>",), assistant=("<longcat_assistant>",),
        results=("<longcat_tool_response>",)),
    "inkling": Turns(
        ends=("<|end_message|>", "<|content_model_end_sampling|>"), user=("<|message_user|>",),
        system=("<|message_system|>",), tool=("<|message_tool|>",),
        assistant=("<|message_model|>",), several=True),
    "plamo": Turns(ends=("<|plamo:eos|>",), user=("<|plamo:op|>",)),
    "openpangu": Turns(
        ends=("[unused10]",), user=("[unused9]用户",), system=("[unused9]系统",),
        tool=("[unused9]方法", "[unused9]工具"), assistant=("[unused9]助手",)),
    "dots": Turns(
        ends=("<|endofresponse|>",), user=("<|userprompt|>",), system=("<|system|>",),
        assistant=("<|response|>",)),
    "telechat": Turns(
        ends=("<_end>",), user=("<_user>",), system=("<_system>",), assistant=("<_bot>",)),
    "jamba": Turns(
        ends=("<|eom|>",), user=("<|bom|><|user|>",), system=("<|bom|><|system|>",),
        tool=("<|bom|><|tool|>",), assistant=("<|bom|><|assistant|>",)),
    "ernie": Turns(ends=("<|end_of_sentence|>",)),
    "baichuan": Turns(ends=("</s>",), user=("<reserved_106>",), assistant=("<reserved_107>",)),
    "openchat": Turns(
        ends=("<|end_of_turn|>",), user=("GPT4 Correct User:",),
        assistant=("GPT4 Correct Assistant:",)),
    "qwen_agent": Turns(results=("✿RESULT✿", "✿RETURN✿")),
    # The loop of ReAct writes results as a line
    "react": Turns(results=("Observation:",)),
    "vicuna": Turns(ends=("</s>",), user=("USER:",), assistant=("ASSISTANT:",)),
    "alpaca": Turns(user=("### Instruction:",), assistant=("### Response:",)),
}  # fmt: skip

# Words and tags that prose may hold as well: they mean a turn only at
# the beginning of a line, or right after an end.
PLAIN = frozenset(
    {
        "human:", "system:", "assistant:", "USER:", "ASSISTANT:", "Observation:",
        "### Instruction:", "### Response:", "## Return of ", "GPT4 Correct User:",
        "GPT4 Correct Assistant:", "<user>", "<system>", "<assistant>",
        "<results>", "<response>", "```tool_response", "```tool_output",

        "assistant<|role_sep|>", "function call<|role_sep|>",
    }
)  # fmt: skip

TURN_ENDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            *(end for turns in TURNS.values() for end in turns.ends if end not in PLAIN),
            # GLM's models end their turn with the header of the next one.
            "<|observation|>",
            "<|user|>",
        )
    )
)
"""The tokens that end an answer, where they were not stripped from it."""
