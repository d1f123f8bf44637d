//! What nvml-wrapper lacks: a field value of all NVLinks of a GPU together (it asks for link 0 alone).

use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper::sys_exports::field_id::{
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX as RECEIVED, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX as SENT,
};
use nvml_wrapper_sys::bindings::{
    nvmlFieldValue_t, nvmlValue_t, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG as UNSIGNED_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as UNSIGNED_LONG_LONG,
};

/// Means "all links together" where a link's number is expected.
const ALL_LINKS: u32 = u32::MAX;

/// Bytes that a GPU has sent and received over its NVLinks, without the protocol's own, since its driver was loaded.
///
/// # Errors
/// Those of NVML; a GPU without NVLink says `NotSupported`.
pub fn nvlink_bytes(device: &Device<'_>) -> Result<(u64, u64), NvmlError> {
    let get = nvml_sym(device.nvml().lib().nvmlDeviceGetFieldValues.as_ref())?;
    let mut fields = [field(SENT), field(RECEIVED)];
    // SAFETY: the handle is used while `device`, and so its library, lives; the call fills in the two fields that it is
    // told of.
    nvml_try(unsafe { get(device.handle(), 2, fields.as_mut_ptr()) })?;
    Ok((kibibytes(&fields[0])? << 10, kibibytes(&fields[1])? << 10))
}

fn field(id: u32) -> nvmlFieldValue_t {
    nvmlFieldValue_t {
        fieldId: id,
        scopeId: ALL_LINKS,
        timestamp: 0,
        latencyUsec: 0,
        valueType: 0,
        nvmlReturn: 0,
        value: nvmlValue_t { ullVal: 0 },
    }
}

fn kibibytes(field: &nvmlFieldValue_t) -> Result<u64, NvmlError> {
    nvml_try(field.nvmlReturn)?;
    // SAFETY: all members are plain numbers that begin at the union's first byte, and it was made from eight zeros, so
    // each is initialised whatever NVML wrote; the type says which one it wrote.
    let (int, long, long_long) = unsafe { (field.value.uiVal, field.value.ulVal, field.value.ullVal) };
    match field.valueType {
        UNSIGNED_INT => Ok(u64::from(int)),
        UNSIGNED_LONG => Ok(long),
        UNSIGNED_LONG_LONG => Ok(long_long),
        other => Err(NvmlError::UnexpectedVariant(other)),
    }
}

#[cfg(test)]
mod tests {
    use nvml_wrapper::error::NvmlError;
    use nvml_wrapper_sys::bindings::nvmlValue_t;

    use super::{SENT, UNSIGNED_INT, UNSIGNED_LONG_LONG, field, kibibytes};

    #[test]
    fn a_value_is_read_as_its_type_says() {
        let mut value = field(SENT);
        value.value = nvmlValue_t { ullVal: (7 << 32) | 5 };
        value.valueType = UNSIGNED_INT;
        assert_eq!(kibibytes(&value).unwrap(), 5);
        value.valueType = UNSIGNED_LONG_LONG;
        assert_eq!(kibibytes(&value).unwrap(), (7 << 32) | 5);
        value.valueType = 99;
        assert!(matches!(kibibytes(&value), Err(NvmlError::UnexpectedVariant(99))));
        value.nvmlReturn = 3;
        assert!(matches!(kibibytes(&value), Err(NvmlError::NotSupported)));
    }
}
