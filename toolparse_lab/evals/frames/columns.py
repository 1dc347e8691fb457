"""Every column of every frame, declared once: name, dtype and one line of meaning.

`dtype` is the name pandas knows. ``category`` columns hold text that is never empty. Columns whose
name ends in ``_json`` hold canonical JSON text, because dicts do not survive Parquet. Beside the
declared columns the trials frame has one ``metadata_<key>`` column of text for every metadata key
of its cases. A row of it holds everything that reading and scoring its answer takes, so that
`parse_frame` can do both again anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one kind of frame. See the head of this file for its dtype."""

    frame: str
    name: str
    dtype: str
    meaning: str


_TEXT, _INT, _FLOAT, _BOOL, _CATEGORY = "string", "Int64", "Float64", "boolean", "category"

_KEYS = (
    ("run_id", _CATEGORY, "The run this row belongs to."),
    ("trial_id", _TEXT, "One completion read by one parse protocol under one policy."),
    ("case_id", _TEXT, "The case that was asked."),
    ("trial", _INT, "The repetition, from 0."),
    ("model", _CATEGORY, "The alias of the model."),
    ("arm", _CATEGORY, "The arm of the experiment."),
    ("prompt_protocol", _CATEGORY, "What the model was told to write."),
    ("parse_protocol", _CATEGORY, "What read the answer."),
    ("policy", _CATEGORY, "The coercion policy."),
)

_FRAMES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "runs": (
        ("run_id", _TEXT, "The run."),
        ("created", _TEXT, "When it began, ISO time."),
        ("status", _CATEGORY, "running, complete, incomplete or interrupted."),
        ("stop_reason", _TEXT, "Why it stopped before its plan was done."),
        ("n_cases", _INT, "Cases in the plan."),
        ("n_models", _INT, "Models in the plan."),
        ("n_arms", _INT, "Arms in the plan."),
        ("n_trials", _INT, "Repetitions in the plan."),
        ("planned", _INT, "Completions in the plan."),
        ("recorded", _INT, "Completions recorded."),
        ("failed", _INT, "Recorded failures of a provider."),
        ("cost", _FLOAT, "US dollars spent."),
        ("max_cost", _FLOAT, "US dollars allowed."),
        ("version", _TEXT, "Version of toolparse_lab that ran it."),
        ("plan_json", _TEXT, "The plan."),
    ),
    "trials": (
        *_KEYS,
        (
            "parse_version",
            _CATEGORY,
            "The version of what read it; missing where it has none or nothing was read.",
        ),
        ("category", _CATEGORY, "The category of the case."),
        ("input", _TEXT, "The user's text, or the messages as JSON."),
        (
            "target",
            _TEXT,
            "The wanted calls as JSON; [] where none is wanted, missing where not graded.",
        ),
        ("tools_json", _CATEGORY, "The tools of the case: with them the row can be read again."),
        (
            "tool_choice",
            _CATEGORY,
            "What the first turn was to do: auto, required, none, or the tool's name as JSON.",
        ),
        ("raw", _TEXT, "The model's text; lone surrogates are written as \\udXXX."),
        (
            "raw_surrogates_json",
            _TEXT,
            "Offsets in raw of what is written so; missing where there is nothing such.",
        ),
        ("reasoning", _TEXT, "What the model thought, where the provider gives it apart from raw."),
        ("outcome", _CATEGORY, "What the trial came to, see the outcomes."),
        ("sub_code", _CATEGORY, "What kind of wrong call, cut or failure."),
        ("detail", _TEXT, "The outcome in one sentence."),
        ("missing_reason", _TEXT, "Why there is nothing to judge; missing where there is."),
        ("note", _TEXT, "A person's note on the trial."),
        (
            "override",
            _TEXT,
            "The outcome that a person set by hand; no score and no rate goes by it.",
        ),
        ("override_why", _TEXT, "The person's reason for it."),
        ("score_success", _BOOL, "Success under this row's policy."),
        ("score_strict", _BOOL, "Success as written: no edit, no reading step, no coercion."),
        ("score_repaired", _BOOL, "Success with edits, without coercion."),
        ("score_safe", _BOOL, "Success with lossless coercion only."),
        ("score_naive", _BOOL, "What a regex for a JSON object and json.loads would have scored."),
        (
            "score_fabricated",
            _BOOL,
            "A call holds what the text does not say; missing where there is no call.",
        ),
        (
            "score_answer",
            _BOOL,
            "The conversation ended with the wanted text; missing where none is wanted.",
        ),
        (
            "n_turns",
            _INT,
            "Questions answered in the conversation; missing where its arm has one turn, like the "
            "next.",
        ),
        ("stop", _TEXT, "Why the conversation ended, see flow.STOPS."),
        ("final_text", _TEXT, "The text it ended with."),
        ("n_ran", _INT, "Calls whose tools ran."),
        ("n_failed", _INT, "Calls whose tools failed."),
        (
            "n_rejected",
            _INT,
            "Calls that were not run because their arguments do not fit the schema.",
        ),
        (
            "conversation_tokens",
            _INT,
            "Tokens sent and received in all turns, where they were counted.",
        ),
        ("conversation_cost", _FLOAT, "US dollars of all turns, where prices are known."),
        (
            "verdict",
            _CATEGORY,
            "The worst verdict of the calls: none, clean, repaired (lossless), repaired (lossy), "
            "invalid, refused, truncated or echoed.",
        ),
        ("n_calls", _INT, "Calls found."),
        ("n_ok", _INT, "Calls that are readable, complete and of a known name."),
        ("n_valid", _INT, "Calls whose arguments satisfy the schema."),
        ("n_edits", _INT, "Repairs made."),
        ("n_reads", _INT, "Reading steps made (aliases, double encoding)."),
        ("n_coercions", _INT, "Coercions made."),
        ("n_problems", _INT, "Complaints."),
        ("error_code", _CATEGORY, "The first complaint of severity error."),
        ("codes_json", _TEXT, "Code -> number of complaints of severity error or warning."),
        ("rules_json", _TEXT, "Rule -> number of times it was applied."),
        (
            "rescues_json",
            _TEXT,
            "Rule -> how many of the values it changed are right, and how many wrong, each judged "
            "at its own place.",
        ),
        ("status", _CATEGORY, "ok or error, of the completion."),
        ("model_name", _CATEGORY, "The model string that was sent, where the record has it."),
        (
            "sampling_json",
            _CATEGORY,
            "The sampling parameters that were really sent: temperature, seed, max_tokens …; one "
            "that is not there was left to the provider.",
        ),
        ("error", _CATEGORY, "The class of a provider's failure."),
        ("error_message", _TEXT, "Its message, redacted."),
        ("error_param", _CATEGORY, "The parameter that the endpoint refused."),
        ("finish_reason", _CATEGORY, "Why the answer ended, in the provider's words."),
        ("prompt_tokens", _INT, "Tokens sent."),
        ("completion_tokens", _INT, "Tokens received."),
        ("total_tokens", _INT, "Both."),
        (
            "reasoning_tokens",
            _INT,
            "Those of the received that were reasoning, for Anthropic as litellm estimates them; "
            "missing where they are not counted, like the next two.",
        ),
        ("cached_tokens", _INT, "Those of the sent that the provider had in its cache."),
        ("cache_write_tokens", _INT, "Those of the sent that it wrote into its cache."),
        ("cost", _FLOAT, "US dollars."),
        ("latency", _FLOAT, "Seconds from request to end."),
        ("ttft", _FLOAT, "Seconds from request to the first chunk."),
        ("queue_wait", _FLOAT, "Seconds before the request was sent."),
        ("attempt", _INT, "The attempt that was recorded, from 1."),
        ("retries", _INT, "Attempts before it."),
        ("stream", _BOOL, "Whether it was a stream."),
        ("cut", _BOOL, "A stream without a finish part."),
        ("endpoint_kind", _CATEGORY, "chat_text, native_tools or raw_completion."),
        (
            "fidelity",
            _CATEGORY,
            "wire, sdk, replayed or synthetic; logprobs, token_ids or raw_messages where raw was "
            "taken from there.",
        ),
        ("system_fingerprint", _TEXT, "The server's own version mark."),
        (
            "server_json",
            _TEXT,
            "The server's own calls, where the response held what the model wrote beside them.",
        ),
        (
            "blame",
            _TEXT,
            "Whether the model or the server's parser is at fault, in a sentence; missing where "
            "there is no server_json.",
        ),
        ("completion_key", _TEXT, "Key of the recorded completion."),
        ("created", _TEXT, "When it was recorded, ISO time."),
    ),
    "calls": (
        *_KEYS,
        ("call_id", _TEXT, "trial_id/index."),
        ("index", _INT, "Place among the calls of the text, from 0."),
        ("name", _TEXT, "The tool's name."),
        ("status", _CATEGORY, "ok, unknown_tool, truncated, undecodable, echoed or draft."),
        ("verdict", _CATEGORY, "The verdict on the call, as in the trials frame but never none."),
        ("ok", _BOOL, "Readable, complete and of a known name."),
        ("valid", _BOOL, "ok, and the arguments satisfy the schema."),
        ("confidence", _FLOAT, "1 for a call in its own format, lower for a recovered one."),
        ("wire_format", _CATEGORY, "The format the call was written in."),
        ("wire_id", _TEXT, "The id the text itself carries."),
        ("arguments_json", _TEXT, "The arguments after coercion."),
        ("source_json", _TEXT, "The arguments as found."),
        ("start", _INT, "First code point of the call in raw."),
        ("end", _INT, "Code point after its last."),
        ("closed", _BOOL, "Whether its closer was found."),
        ("n_edits", _INT, "Repairs made."),
        ("n_reads", _INT, "Reading steps made."),
        ("n_coercions", _INT, "Coercions made."),
        ("error_code", _CATEGORY, "The first complaint of severity error."),
        ("codes_json", _TEXT, "Code -> number of complaints of severity error or warning."),
        ("rules_json", _TEXT, "Rule -> number of times it was applied."),
    ),
    "events": (
        *_KEYS,
        ("call_id", _TEXT, "trial_id/index; missing for what concerns the whole text."),
        ("kind", _CATEGORY, "step, problem or retry."),
        ("stage", _CATEGORY, "scan, repair, decode, read, coerce or validate."),
        ("code", _CATEGORY, "Rule id of a step, code of a problem, class of a failure."),
        ("severity", _CATEGORY, "Of a problem: error, warning or info."),
        ("lossless", _BOOL, "Of a step: nothing was guessed or dropped."),
        ("path", _TEXT, "JSON Pointer into the arguments."),
        ("start", _INT, "First code point concerned in raw."),
        ("end", _INT, "Code point after the last."),
        ("before_json", _TEXT, "Of a step: the changed subtree before."),
        ("after_json", _TEXT, "Of a step: the changed subtree after."),
        ("message", _TEXT, "The sentence of the rule or problem."),
    ),
    "chunks": (
        ("completion_key", _TEXT, "Key of the recorded completion."),
        ("trial_id", _TEXT, "A trial that read it, where the source was trials."),
        ("case_id", _TEXT, "Its case."),
        ("index", _INT, "Place in the stream, from 0."),
        ("at", _FLOAT, "Seconds since the request was sent."),
        ("kind", _CATEGORY, "content or reasoning."),
        ("text", _TEXT, "The text as received; lone surrogates are written as \\udXXX."),
        ("start", _INT, "First code point in the joined text of its kind."),
        ("end", _INT, "Code point after its last."),
    ),
    "readings": (
        ("reading", _TEXT, "The protocol, or the name of the parser that was passed."),
        ("kind", _CATEGORY, "protocol, or outside for a parser that was passed."),
        (
            "agrees",
            _CATEGORY,
            "The same letter for the same executable calls; missing where there are none.",
        ),
        ("n_calls", _INT, "Calls found."),
        ("n_ok", _INT, "Calls that are readable, complete and of a known name."),
        ("n_executable", _INT, "Those of them whose arguments satisfy the schema."),
        ("n_repairs", _INT, "Repairs made; missing for an outside parser, like the next."),
        ("n_coercions", _INT, "Coercions made."),
        (
            "calls_json",
            _TEXT,
            "The calls, [{name, arguments}]; arguments are null where they could not be read.",
        ),
        ("text", _TEXT, "The text outside calls, markup and reasoning."),
        (
            "error_codes",
            _TEXT,
            "The codes of its complaints of severity error, with commas between.",
        ),
        (
            "failure",
            _TEXT,
            "What an outside parser raised, or why what it returned is no list of calls.",
        ),
    ),
    "checks": (
        ("model", _CATEGORY, "The alias of the model."),
        ("protocol", _CATEGORY, "The protocol whose delimiters were tried, or native."),
        (
            "verdict",
            _CATEGORY,
            "ok, failed (of the endpoint) or uncertain (the model did not do as it was told).",
        ),
        ("why", _TEXT, "The reason in one sentence."),
        ("notes", _TEXT, "What is worth knowing and changes no verdict."),
        ("tools_sent", _BOOL, "Of native: the body that was sent held the tool as a tool."),
        ("raw", _TEXT, "The answer as recorded."),
        ("reasoning", _TEXT, "Reasoning that came apart from it."),
        ("finish_reason", _TEXT, "In the provider's word."),
        ("error", _TEXT, "The class of a failure."),
        ("endpoint_kind", _TEXT, "chat_text, native_tools or raw_completion."),
        (
            "sent_json",
            _TEXT,
            "The body as sent, without messages and tools that were sent as asked for.",
        ),
        ("completion_key", _TEXT, "Key of the recorded completion."),
    ),
}

COLUMNS: tuple[Column, ...] = tuple(
    Column(f, *c) for f, columns in _FRAMES.items() for c in columns
)


def columns_of(frame: str) -> tuple[Column, ...]:
    """Return the declared columns of one kind of frame, in order.

    None for a kind there is not.

    frame: runs, trials, calls, events, chunks, readings or checks.

    >>> [column.name for column in columns_of("chunks")][:3]
    ['completion_key', 'trial_id', 'case_id']
    """
    return tuple(column for column in COLUMNS if column.frame == frame)
