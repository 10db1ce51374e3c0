package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ridge/measure/roofline"
	"ridge/model"
	"ridge/weights/tensor"
)

// UnmarshalJSON reads a result that MarshalJSON wrote. What follows from the
// samples is computed anew. Steps is 0, and the seconds of single steps are
// gone: only their percentiles are written.
func (r *Result) UnmarshalJSON(data []byte) error {
	var rec record
	if err := json.Unmarshal(data, &rec); err != nil {
		return fmt.Errorf("bench: result: %w", err)
	}
	kv, err := tensor.ParseDType(rec.TypeK)
	if err != nil {
		return fmt.Errorf("bench: result: type_k: %w", err)
	}
	act, err := model.ParseAct(cmp.Or(rec.Act, model.ActInt8.String())) // as roofline reads them
	if err != nil {
		return fmt.Errorf("bench: result: %w", err)
	}
	at, err := time.Parse(time.RFC3339, rec.Time)
	if err != nil {
		return fmt.Errorf("bench: result: test_time: %w", err)
	}
	if slices.Contains(rec.Peers, nil) {
		return errors.New("bench: result: peers: expected objects, found null")
	}
	*r = Result{
		Build: rec.Build, CPU: rec.CPU, Tier: rec.Tier, File: rec.File, Model: rec.Type, Size: rec.Size, Parameters: rec.Parameters,
		Threads: rec.Threads, KV: kv, Act: act, Time: at, Load: rec.LoadTime,
		Work:    roofline.Work{Prompt: rec.Prompt, Gen: rec.Gen, Depth: rec.Depth, Seqs: rec.Seqs, Chunk: rec.Batch},
		StepMin: rec.StepMin / 1e3, StepP50: rec.StepP50 / 1e3, StepP99: rec.StepP99 / 1e3,
		Pauses: rec.Pauses, PauseMax: rec.PauseMax / 1e3, Cost: rec.Cost,
		ReadRate: rec.ReadRate, IntRate: rec.IntRate, FloatRate: rec.FloatRate, BrainRate: rec.BrainRate, Bound: rec.Bound, Limit: rec.Limit, Attn: rec.Attn,
		LoadBefore: rec.LoadBefore, LoadAfter: rec.LoadAfter, Share: rec.Share, shares: rec.Shares, Peers: rec.Peers, LeftOut: rec.LeftOut,
	}
	for _, ns := range rec.SamplesNS {
		r.Seconds = append(r.Seconds, float64(ns)/1e9)
	}
	r.Speed = SpreadOf(perSecond(r.Work.Tokens(), r.Seconds))
	return nil
}
